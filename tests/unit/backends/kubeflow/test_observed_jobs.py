"""What a job's own conditions, annotations and places of pods come to."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from gateway.backends.base import ObjectOutcome, ObjectRef
from gateway.backends.kubeflow.json_paths import Json
from gateway.backends.kubeflow.observation import (
    is_live,
    is_same,
    is_suspended,
    may_start,
    observation_of,
    outcome_of,
    recreated_uids,
    recreations_of,
    result_at,
    was_opened,
)
from gateway.backends.kubeflow.replicas import MOST_MESSAGE
from tests.contract.backends.launches import a_launch, a_manifest
from tests.unit.backends.kubeflow.test_observation import (
    a_job,
    ended,
    on_node,
    running,
    seen,
)

REF = ObjectRef(namespace="default", name="digits-ab12-1", uid="own")
OPENED, RECREATED = "training-gateway.io/opened", "training-gateway.io/recreated"


def with_conditions(*conditions: dict[str, object]) -> Json:
    return {"status": {"conditions": list(conditions)}}


def true(name: str, **more: object) -> dict[str, object]:
    return {"type": name, "status": "True", **more}


def annotated(**values: object) -> Json:
    names = {"opened": OPENED, "recreated": RECREATED}
    return {"metadata": {"annotations": {names[key]: value for key, value in values.items()}}}


@pytest.mark.parametrize(
    ("conditions", "outcome"),
    [
        ([], ObjectOutcome.UNDECIDED),
        ([true("Created"), true("Running"), true("Restarting"), true("Suspended")], "undecided"),
        ([true("Succeeded"), true("Failed")], "failed"),
        ([true("Failed"), true("Succeeded")], "failed"),
        ([{"type": "Failed", "status": "False"}, true("Succeeded")], "succeeded"),
        ([{"type": "Failed", "status": True}], "undecided"),
        ([{"type": "Failed", "status": "true"}], "undecided"),
        ([{"type": "failed", "status": "True"}], "undecided"),
        ([{"type": "Failed"}], "undecided"),
    ],
)
def test_the_outcome_is_read_by_rank_of_the_conditions_and_not_by_their_order(
    conditions: list[dict[str, object]], outcome: str
) -> None:
    assert outcome_of(with_conditions(*conditions)) == outcome


@pytest.mark.parametrize("job", [None, {}, {"status": None}, {"status": {"conditions": {}}}])
def test_a_job_without_conditions_is_undecided(job: Json | None) -> None:
    assert outcome_of(job) is ObjectOutcome.UNDECIDED


@pytest.mark.parametrize(
    ("written", "instant"),
    [
        ("2026-01-01T00:00:00Z", datetime(2026, 1, 1, tzinfo=UTC)),
        (
            "2026-01-01T02:00:00+02:00",
            datetime(2026, 1, 1, 2, tzinfo=timezone(timedelta(hours=2))),
        ),
        ("2026-01-01T00:00:00", None),
        ("2026-13-01T00:00:00Z", None),
        ("yesterday", None),
        ("", None),
        (None, None),
        (1767225600, None),
    ],
)
@pytest.mark.parametrize("kind", ["Failed", "Succeeded"])
def test_the_instant_of_a_result_is_read_with_its_zone_or_not_at_all(
    kind: str, written: object, instant: datetime | None
) -> None:
    assert result_at(with_conditions(true(kind, lastTransitionTime=written))) == instant


def test_a_job_without_a_result_has_no_instant_of_one() -> None:
    assert (
        result_at(with_conditions(true("Running", lastTransitionTime="2026-01-01T00:00:00Z")))
        is None
    )
    assert result_at({}) is None


@pytest.mark.parametrize(
    ("suspend", "suspended"),
    [(True, True), (False, False), (None, False), ("true", False), (1, False)],
)
def test_only_a_true_suspends(suspend: object, *, suspended: bool) -> None:
    job = {"spec": {"runPolicy": {"suspend": suspend}}}

    assert is_suspended(job) is suspended
    assert may_start(job) is suspended
    assert not may_start({**job, **with_conditions(true("Failed"))})


@pytest.mark.parametrize("mark", ["true", "True", "1", "", None, True])
def test_a_gang_was_opened_when_the_mark_says_exactly_so(mark: object) -> None:
    assert was_opened(annotated(opened=mark)) is (mark == "true")
    assert not was_opened(None)


@pytest.mark.parametrize(
    ("written", "uids"),
    [
        ("", set()),
        ("a", {"a"}),
        ("a,b", {"a", "b"}),
        ("a,,b,", {"a", "b"}),
        ("a,a", {"a"}),
        (None, set()),
        (["a"], set()),
    ],
)
def test_recorded_uids_are_a_set_without_empty_ones(written: object, uids: set[str]) -> None:
    assert recreated_uids(annotated(recreated=written)) == uids


@pytest.mark.parametrize(
    ("opened", "recorded", "gated_uids", "count"),
    [
        (None, "", ["p"], 0),
        ("true", "", ["p"], 1),
        ("true", "p", ["p"], 1),
        ("true", "old", ["p"], 2),
        ("true", "old", [], 1),
        (None, "old", ["p"], 1),
        ("true", "", ["p", "q"], 2),
    ],
)
def test_a_successor_is_counted_once_whether_noted_or_still_gated(
    opened: str | None, recorded: str, gated_uids: list[str], count: int
) -> None:
    gate = [{"name": "training-gateway.io/reservation"}]
    pods = [{"metadata": {"uid": uid}, "spec": {"schedulingGates": gate}} for uid in gated_uids]

    assert recreations_of(annotated(opened=opened, recreated=recorded), pods) == count


def test_an_object_is_the_same_by_uid_and_live_until_somebody_asks_it_to_go() -> None:
    job = a_job()
    leaving = a_job(deletionTimestamp="2026-01-01T00:00:00Z")

    assert [is_same(each, REF) for each in (job, leaving, a_job(uid="x"), None)] == [
        True,
        True,
        False,
        False,
    ]
    assert [is_live(each, REF) for each in (job, leaving, a_job(uid="x"), None)] == [
        True,
        False,
        False,
        False,
    ]


@pytest.mark.parametrize(
    ("pods", "is_lost"),
    [
        ([], True),
        ([ended(0, 0)], True),
        ([ended(0, 1)], False),
        ([ended(0, 137, reason="Evicted")], True),
        ([ended(0, 137, reason="Evicted"), ended(1, 1)], False),
        ([ended(0, 1, reason="NodeLost"), ended(1, 1, reason="Shutdown")], True),
    ],
)
def test_a_gang_is_lost_when_no_replica_failed_by_itself(
    pods: list[Json], *, is_lost: bool
) -> None:
    assert seen(a_job("Failed"), *pods).is_lost is is_lost
    assert not seen(a_job("Succeeded"), *pods).is_lost
    assert not seen(a_job(), *pods).is_lost


def test_without_evidence_a_cleaned_up_gang_counts_as_failed() -> None:
    job = a_job("Failed")
    job["spec"]["runPolicy"]["cleanPodPolicy"] = "All"

    assert not seen(job).is_lost


def test_the_operators_words_stand_where_no_replica_has_any() -> None:
    job = a_job()
    job["status"]["conditions"] = [true("Failed", message="PyTorchJob digits failed: BackoffLimit")]

    assert seen(job).message == "PyTorchJob digits failed: BackoffLimit"
    assert seen(job, ended(1, 3)).message == "Worker 0 failed with exit code 3: Error"


@pytest.mark.parametrize("conditions", [[], [true("Failed", message="operator")]])
def test_a_misplaced_pod_is_told_before_anything_else(conditions: list[dict[str, Any]]) -> None:
    job = a_job()
    job["status"]["conditions"] = conditions
    stray = on_node(running(1), "elsewhere")

    found = seen(job, on_node(ended(0, 1), "other"), stray)

    assert found.message == (
        "Master 0 is on node other, reserved is dgx-h100-0; "
        "Worker 0 is on node elsewhere, reserved is dgx-h100-0"
    )


def test_a_worker_beyond_the_reservation_is_told_by_its_node() -> None:
    surplus = running(1)
    surplus["metadata"]["labels"]["training.kubeflow.org/replica-index"] = "7"

    assert seen(a_job(), surplus).message == "a pod without a reservation is on node dgx-h100-0"


def test_a_message_is_cut_where_many_pods_are_misplaced() -> None:
    launch = a_launch(a_manifest(40))
    pods = [on_node(running(1), f"stray-{number}") for number in range(40)]
    for number, pod in enumerate(pods):
        pod["metadata"]["labels"]["training.kubeflow.org/replica-index"] = str(number)

    found = observation_of(launch, REF, a_job(), pods)

    assert len(found.message) == MOST_MESSAGE
    assert len(found.replicas) == 40


def test_the_order_of_pods_in_a_list_changes_nothing() -> None:
    pods = [ended(0, 1), running(1)]

    assert seen(a_job("Failed"), *pods) == seen(a_job("Failed"), *reversed(pods))
