"""The gateway's own fields: annotations, the operator's own places, overrides, and their order."""

from typing import Any

import pytest

from gateway.core.vocabulary import PairRule
from gateway.errors import InvalidInput, NotSupportedYet
from gateway.manifests import ReadOptions, digest, read_job
from gateway.manifests.fields import FIELDS
from tests.unit.manifests.building import (
    a_manifest,
    annotated,
    read_with,
    refusal_of,
)

GPUS = {"resources": {"limits": {"nvidia.com/gpu": 1}}}


def with_policy(**policy: Any) -> dict[str, Any]:
    return a_manifest(spec={"runPolicy": policy})


@pytest.mark.parametrize(
    ("policy", "field", "value"),
    [
        ({"suspend": True}, "hold", True),
        ({"suspend": False}, "hold", False),
        ({"activeDeadlineSeconds": 60}, "run_timeout_seconds", 60),
        ({"schedulingPolicy": {"queue": "q"}}, "queue", "q"),
        ({"schedulingPolicy": {"scheduleTimeoutSeconds": 5}}, "queue_timeout_seconds", 5),
        ({"schedulingPolicy": {"minAvailable": 1}}, "priority", 0),
        ({"schedulingPolicy": {"priorityClass": "high"}}, "priority_class", "high"),
    ],
)
def test_the_operators_own_places_are_honoured(
    policy: dict[str, Any], field: str, value: object
) -> None:
    assert getattr(read_job(with_policy(**policy)), field) == value


@pytest.mark.parametrize(
    ("policy", "annotation", "place"),
    [
        ({"suspend": True}, {"hold": "false"}, "suspend"),
        (
            {"schedulingPolicy": {"priorityClass": "high"}},
            {"priority_class": "low"},
            "schedulingPolicy/priorityClass",
        ),
        (
            {"activeDeadlineSeconds": 60},
            {"run_timeout_seconds": "61"},
            "activeDeadlineSeconds",
        ),
        (
            {"schedulingPolicy": {"scheduleTimeoutSeconds": 5}},
            {"queue_timeout_seconds": "6"},
            "schedulingPolicy/scheduleTimeoutSeconds",
        ),
    ],
)
def test_places_that_disagree_are_refused(
    policy: dict[str, Any], annotation: dict[str, str], place: str
) -> None:
    document = a_manifest(spec={"runPolicy": policy}, metadata=annotated(**annotation))
    error = refusal_of(document)
    assert error.pointer == f"/spec/runPolicy/{place}"
    assert "/metadata/annotations/" in error.detail


def test_two_names_of_one_field_must_agree() -> None:
    document = a_manifest(GPUS, metadata=annotated(pair="numa", devices_pair="switch"))
    assert "one place only" in refusal_of(document).hint


@pytest.mark.parametrize(
    ("document", "overrides", "field", "value"),
    [
        (a_manifest(metadata=annotated(queue="a")), {"queue": "b"}, "queue", "b"),
        (with_policy(schedulingPolicy={"queue": "a"}), {"queue": "b"}, "queue", "b"),
        (with_policy(suspend=True), {"hold": False}, "hold", False),
        (
            with_policy(activeDeadlineSeconds=9),
            {"run_timeout_seconds": "7"},
            "run_timeout_seconds",
            7,
        ),
        (a_manifest(), {"priority": "-3"}, "priority", -3),
        (a_manifest(), {"queue": "2024"}, "queue", "2024"),
        (a_manifest(), {"queue": None, "priority": None}, "queue", ""),
        (a_manifest(), {"start-timeout-seconds": 30}, "start_timeout_seconds", 30),
        (a_manifest(), {"name": "other"}, "name", "other"),
        (a_manifest(), {"namespace": "other"}, "namespace", "other"),
        (
            a_manifest(metadata={"labels": {"a": "b"}}),
            {"labels": {"c": "d"}},
            "labels",
            {"a": "b", "c": "d"},
        ),
        (a_manifest(), {"annotations": {"a": "b"}}, "annotations", {"a": "b"}),
    ],
)
def test_an_override_wins_and_is_written_into_the_manifest(
    document: dict[str, Any], overrides: dict[str, Any], field: str, value: object
) -> None:
    spec = read_with(document, **overrides)
    assert getattr(spec, field) == value
    assert read_job(spec.manifest) == spec


def test_an_override_of_a_kueue_label_drops_the_label() -> None:
    document = a_manifest(metadata={"labels": {"kueue.x-k8s.io/queue-name": "a"}})
    spec = read_with(document, queue="b")
    assert (spec.queue, spec.labels) == ("b", {})


def test_devices_can_be_overridden_as_a_group_or_one_by_one() -> None:
    document = a_manifest(GPUS)
    for overrides in (
        {"devices": {"pair": "numa", "required": False}},
        {"pair": "numa", "pair_required": False},
    ):
        (pod_set,) = read_with(document, **overrides).pod_sets
        assert (pod_set.pair, pod_set.is_pair_required) == (PairRule.NUMA, False)


def test_a_pair_rule_is_for_pods_with_gpus_only() -> None:
    spec = read_job(a_manifest(metadata=annotated(pair="switch")))
    assert spec.pod_sets[0].pair is PairRule.NODE


@pytest.mark.parametrize(
    ("overrides", "pointer", "hint"),
    [
        ({"quue": "a"}, "/quue", "did you mean 'queue'"),
        ({"image": "a"}, "/image", "in the manifest"),
        ({"manifest": {}}, "/manifest", "submit that manifest"),
        ({"queue": 5}, "/queue", "quotes"),
        ({"labels": {"a": 1}}, "/labels/a", "quotes"),
        ({"name": "Bad Name"}, "/metadata/name", "did you mean"),
        ({"devices": {"pairs": "numa"}}, "/devices/pairs", "did you mean 'pair'"),
        ({"priority": 2e9}, "/priority", "range"),
    ],
)
def test_wrong_overrides_are_refused(overrides: dict[str, Any], pointer: str, hint: str) -> None:
    error = refusal_of(a_manifest(), ReadOptions(overrides=overrides))
    assert error.pointer == pointer
    assert hint in error.hint


UNBUILT = {
    "flavors": ["h100"],
    "all_nics": True,
    "guarantee": "node_exclusive",
    "retries_limit": 1,
    "retries_interval_seconds": 31,
    "retries_backoff": 1.5,
    "retries_max_interval_seconds": 60,
    "retries_on": ["infrastructure"],
    "depends_on": [{"job": "a"}],
    "array_indices": "0-9",
    "array_max_parallel": 2,
    "preemptible": False,
    "min_runtime_seconds": 60,
    "checkpoint_grace_seconds": 60,
    "on_orphan": "cancel",
}
NEUTRAL = {
    "flavors": [],
    "all_nics": False,
    "partition": "none",
    "guarantee": "advisory",
    "accept_advisory": True,
    "retries_limit": 0,
    "retries_interval_seconds": 30,
    "retries_backoff": 2.0,
    "preemptible": True,
    "min_runtime_seconds": 0,
    "checkpoint_grace_seconds": 30,
    "on_orphan": "keep",
    "min_available": 1,
}


@pytest.mark.parametrize(("field", "value"), UNBUILT.items())
def test_a_field_that_is_not_built_is_refused_with_its_place(field: str, value: object) -> None:
    error = refusal_of(a_manifest(), ReadOptions(overrides={field: value}))
    assert (type(error), error.pointer) == (NotSupportedYet, f"/{field}")
    assert error.hint


@pytest.mark.parametrize(("field", "value"), NEUTRAL.items())
def test_a_value_that_asks_for_nothing_is_taken(field: str, value: object) -> None:
    spec = read_with(a_manifest(), **{field: value})
    assert read_job(spec.manifest) == spec


def test_every_field_is_either_built_or_told_here() -> None:
    built = {name for name, field in FIELDS.items() if field.neutral is None}
    assert built == {
        "queue",
        "priority",
        "priority_class",
        "not_before_at",
        "deadline_at",
        "expected_seconds",
        "hold",
        "queue_timeout_seconds",
        "run_timeout_seconds",
        "start_timeout_seconds",
        "topology_level",
        "topology_mode",
        "topology_slice_level",
        "topology_slice_size",
        "topology_avoid_nodes",
        "topology_avoid_mode",
        "pair",
        "pair_required",
        "partition",
        "nics",
        "nics_per_gpu",
        "min_available",
        "idempotency_key",
    }
    assert FIELDS.keys() - built == UNBUILT.keys() | {"accept_advisory"}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("on_orphan", "maybe"),
        ("guarantee", "held"),
        ("not_before_at", "tomorrow"),
        ("not_before_at", "2030-01-01T00:00:00"),
        ("retries_limit", "many"),
        ("idempotency_key", "k"),
        ("preemptible", "maybe"),
        ("retries_on", "[1"),
    ],
)
def test_a_wrong_value_is_wrong_whether_built_or_not(field: str, value: str) -> None:
    assert type(refusal_of(a_manifest(metadata=annotated(**{field: value})))) is InvalidInput


def test_min_available_is_the_whole_gang_or_not_supported() -> None:
    for value, kind in (("1", NotSupportedYet), ("4", InvalidInput)):
        document = a_manifest(metadata=annotated(min_available=value), workers=2)
        assert type(refusal_of(document)) is kind


def test_the_default_namespace_is_written_down() -> None:
    spec = read_job(a_manifest(), ReadOptions(default_namespace="research"))
    assert spec.namespace == "research"
    assert digest(read_job(spec.manifest)) == digest(spec)
