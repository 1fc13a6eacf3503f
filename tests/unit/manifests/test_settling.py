"""What several places say of one field must agree; what was settled is written down once."""

from itertools import permutations
from typing import Any

import pytest

from gateway.errors import InvalidInput
from gateway.manifests import ReadOptions, digest, read_job
from gateway.manifests.claims import KUEUE_QUEUE, Claim, override_claims, settle
from gateway.manifests.overriding import overrides_of
from tests.unit.manifests.building import (
    MASTER,
    a_container,
    a_manifest,
    annotated,
    read_with,
    refusal_of,
)

MAPPING = ReadOptions(kueue_label="map")
KUEUE = KUEUE_QUEUE.replace("/", "~1")
PREFIX = "/metadata/annotations/training-gateway.io~1"

PLACES: dict[str, tuple[dict[str, Any], str]] = {
    "queue": ({"schedulingPolicy": {"queue": "a"}}, "schedulingPolicy/queue"),
    "min_available": ({"schedulingPolicy": {"minAvailable": 1}}, "schedulingPolicy/minAvailable"),
    "queue_timeout_seconds": (
        {"schedulingPolicy": {"scheduleTimeoutSeconds": 60}},
        "schedulingPolicy/scheduleTimeoutSeconds",
    ),
    "run_timeout_seconds": ({"activeDeadlineSeconds": 60}, "activeDeadlineSeconds"),
    "hold": ({"suspend": True}, "suspend"),
}
ALIKE = {
    "queue": "a",
    "min_available": "1",
    "queue_timeout_seconds": "60",
    "run_timeout_seconds": "60",
    "hold": "true",
}
UNLIKE = {**ALIKE, "queue": "b", "queue_timeout_seconds": "61", "run_timeout_seconds": "61"}
UNLIKE |= {"hold": "false", "min_available": "2"}


def saying(field: str, **annotations: str) -> dict[str, Any]:
    """Give a job that says something of a field in the operator's own place, and by annotations."""
    return a_manifest(spec={"runPolicy": PLACES[field][0]}, metadata=annotated(**annotations))


@pytest.mark.parametrize("field", PLACES)
def test_two_places_that_agree_are_one(field: str) -> None:
    spec = read_job(saying(field, **{field: ALIKE[field]}))
    alone = read_job(saying(field))
    changed = {"manifest", "annotations"}
    assert spec.model_dump(exclude=changed) == alone.model_dump(exclude=changed)
    assert read_job(spec.manifest) == spec


@pytest.mark.parametrize("field", PLACES)
def test_two_places_that_disagree_are_refused_with_both(field: str) -> None:
    error = refusal_of(saying(field, **{field: UNLIKE[field]}))
    assert type(error) is InvalidInput
    assert error.pointer == f"/spec/runPolicy/{PLACES[field][1]}"
    assert f"{field} is {UNLIKE[field]} at {PREFIX}{field.replace('_', '-')}" in error.detail
    assert error.allowed == (UNLIKE[field],)
    assert error.hint == "say it in one place only, or the same in both"


@pytest.mark.parametrize("field", [field for field in PLACES if field != "min_available"])
def test_an_override_takes_the_place_of_all_that_the_document_says(field: str) -> None:
    other = {"queue": "c", "hold": False}.get(field, 99)
    document = saying(field, **{field: UNLIKE[field]})
    spec = read_with(document, **{field: other})
    assert getattr(spec, field) == other
    policy = spec.manifest["spec"]["runPolicy"]
    assert PLACES[field][1].rpartition("/")[2] not in str(policy)
    assert read_job(spec.manifest) == spec


def test_an_override_may_replace_an_annotation_that_makes_no_sense() -> None:
    spec = read_with(
        a_manifest(metadata=annotated(priority="high", hold="maybe")), priority=5, hold=False
    )
    assert (spec.priority, spec.hold) == (5, False)


def test_an_override_leaves_other_fields_as_they_are() -> None:
    document = a_manifest(metadata=annotated(queue="a", priority="3", start_timeout_seconds="60"))
    spec = read_with(document, priority=4)
    assert (spec.queue, spec.priority, spec.start_timeout_seconds) == ("a", 4, 60)
    assert spec.manifest["metadata"]["annotations"] == {
        "training-gateway.io/queue": "a",
        "training-gateway.io/priority": "4",
        "training-gateway.io/start-timeout-seconds": "60",
    }


@pytest.mark.parametrize(
    ("overrides", "place"),
    [
        ({"pair": "numa", "devices": {"pair": "switch"}}, "/devices/pair"),
        ({"devices": {"required": True}, "pair_required": False}, "/pair_required"),
        ({"start-timeout-seconds": 5, "start_timeout_seconds": 6}, "/start_timeout_seconds"),
        ({"start_timeout_seconds": 5, "start-timeout-seconds": 6}, "/start-timeout-seconds"),
    ],
)
def test_two_overrides_that_disagree_are_refused(overrides: dict[str, Any], place: str) -> None:
    error = refusal_of(a_manifest(), ReadOptions(overrides=overrides))
    assert error.pointer == place
    assert "one place only" in error.hint


def test_two_overrides_that_agree_are_one() -> None:
    overrides: dict[str, Any] = {"pair": "numa", "devices": {"pair": "numa"}}
    overrides |= {"start-timeout-seconds": 5, "start_timeout_seconds": 5}
    spec = read_with(a_manifest({"resources": {"limits": {"nvidia.com/gpu": 1}}}), **overrides)
    assert (spec.pod_sets[0].pair, spec.start_timeout_seconds) == ("numa", 5)


@pytest.mark.parametrize("order", list(permutations(["priority", "queue", "hold"])))
def test_the_order_of_overrides_changes_nothing(order: tuple[str, ...]) -> None:
    values = {"priority": 3, "queue": "a", "hold": True}
    options = ReadOptions(overrides={name: values[name] for name in order})
    assert digest(read_job(a_manifest(), options)) == digest(read_with(a_manifest(), **values))


def test_overrides_are_plain_data_with_underscores_and_without_nothing() -> None:
    given = {"start-timeout-seconds": 5.0, "queue": None, "env": {"A-B": "1"}, "labels": ()}
    assert overrides_of(ReadOptions(overrides=given)) == {
        "start_timeout_seconds": 5,
        "env": {"A-B": "1"},
        "labels": [],
    }
    assert given["start-timeout-seconds"] == 5.0


def test_claims_of_overrides_are_flat_typed_and_without_other_keys() -> None:
    claims = override_claims(
        {"priority": "7", "image": "a", "devices": {"pair": "numa", "required": "false"}}
    )
    assert claims == [
        Claim("priority", 7, "/priority"),
        Claim("pair", "numa", "/devices/pair"),
        Claim("pair_required", False, "/devices/required"),
    ]


def test_what_the_document_says_stays_where_it_says_it() -> None:
    document = saying("queue")
    settled = settle(document, [], ReadOptions())
    assert settled == {"queue": "a"}
    assert not document["metadata"]["annotations"]
    assert document["spec"]["runPolicy"] == {"schedulingPolicy": {"queue": "a"}}


def kueue_at(place: str, key: str = KUEUE_QUEUE, value: str = "a") -> dict[str, Any]:
    """Give a job with a key of Kueue at one place."""
    kind = place.rpartition("/")[2]
    if place.startswith("/metadata"):
        return a_manifest(metadata={kind: {key: value}})
    document = a_manifest()
    template = document["spec"]["pytorchReplicaSpecs"]["Master"]["template"]
    template["metadata"] = {kind: {key: value}}
    return document


KUEUE_PLACES = [
    f"{top}/metadata/{kind}"
    for top in ("", f"{MASTER}/template")
    for kind in ("labels", "annotations")
]


@pytest.mark.parametrize("place", KUEUE_PLACES)
def test_a_kueue_queue_is_refused_or_mapped_wherever_it_is(place: str) -> None:
    error = refusal_of(kueue_at(place))
    assert error.pointer == f"{place}/{KUEUE}"
    assert "would queue the job a second time" in error.detail
    assert error.hint.endswith("training-gateway.io/queue")
    spec = read_job(kueue_at(place), MAPPING)
    assert spec.queue == "a"
    assert KUEUE_QUEUE not in str(spec.manifest)
    assert read_job(spec.manifest) == spec


@pytest.mark.parametrize("place", KUEUE_PLACES)
@pytest.mark.parametrize("key", ["kueue.x-k8s.io/priority-class", "kueue.x-k8s.io/pod-group-name"])
def test_no_other_key_of_kueue_is_ever_mapped(place: str, key: str) -> None:
    for options in (ReadOptions(), MAPPING):
        error = refusal_of(kueue_at(place, key), options)
        assert error.pointer == f"{place}/{key.replace('/', '~1')}"


@pytest.mark.parametrize("place", KUEUE_PLACES)
def test_a_mapped_queue_must_agree_with_the_annotation(place: str) -> None:
    document = kueue_at(place)
    metadata = document["metadata"]
    metadata["annotations"] = {**metadata.get("annotations", {}), "training-gateway.io/queue": "b"}
    error = refusal_of(document, MAPPING)
    assert error.pointer == f"{place}/{KUEUE}"
    metadata["annotations"]["training-gateway.io/queue"] = "a"
    assert read_job(document, MAPPING).queue == "a"


@pytest.mark.parametrize("place", KUEUE_PLACES)
def test_an_overridden_queue_drops_the_label_even_where_it_would_be_refused(place: str) -> None:
    overrides = {"queue": "c"}
    for options in (
        ReadOptions(overrides=overrides, kueue_label="refuse"),
        ReadOptions(overrides=overrides, kueue_label="map"),
    ):
        spec = read_job(kueue_at(place), options)
        assert (spec.queue, KUEUE_QUEUE in str(spec.manifest)) == ("c", False)


def test_a_queue_of_kueue_that_is_no_name_here_is_refused() -> None:
    error = refusal_of(kueue_at("/metadata/labels", value="A.b"), MAPPING)
    assert (error.pointer, error.value) == (f"/metadata/labels/{KUEUE}", "A.b")


@pytest.mark.parametrize("given", [{"pair_required": True}, {"devices": {"required": False}}])
def test_a_pair_that_is_required_needs_a_rule(given: dict[str, Any]) -> None:
    error = refusal_of(a_manifest(), ReadOptions(overrides=given))
    assert error.allowed == ("switch", "numa", "node", "none")
    assert error.hint == "name the pair rule too, or remove pair_required"


@pytest.mark.parametrize("rule", ["switch", "numa", "node", "none"])
@pytest.mark.parametrize("required", [None, True, False])
def test_a_pair_rule_goes_to_the_pods_that_have_gpus(rule: str, *, required: bool | None) -> None:
    document = a_manifest(workers=2)
    worker = a_container(resources={"limits": {"nvidia.com/gpu": 1}})
    document["spec"]["pytorchReplicaSpecs"]["Worker"]["template"] = {
        "spec": {"containers": [worker]}
    }
    spec = read_with(document, pair=rule, pair_required=required)
    master, workers = spec.pod_sets
    assert (master.pair, master.is_pair_required) == ("node", True)
    assert (workers.pair, workers.is_pair_required) == (rule, required is not False)
