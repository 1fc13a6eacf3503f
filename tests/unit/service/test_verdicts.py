"""What one look at a gang means for its attempt."""

from typing import Any

import pytest

from gateway.backends.base import ObjectOutcome, Observation, ReplicaPhase, ReplicaSeen
from gateway.core.vocabulary import EndReason, StopOutcome
from gateway.service.verdicts import ending, has_closed_gate, is_ready, overdue
from tests.contract.backends.launches import a_launch

SECOND = 1_000_000


def seen(*phases: ReplicaPhase, **changes: Any) -> Observation:
    """Give an observation of a Master and Workers in these phases."""
    replicas = tuple(
        ReplicaSeen(pod_set="Worker" if rank else "Master", index=max(0, rank - 1), phase=phase)
        for rank, phase in enumerate(phases)
    )
    return Observation(**{"exists": True, "replicas": replicas, **changes})


def failed(*codes: int) -> Observation:
    """Give a failed object whose replicas ended with these codes."""
    replicas = tuple(
        ReplicaSeen(pod_set="Worker", index=index, phase=ReplicaPhase.FAILED, exit_code=code)
        for index, code in enumerate(codes)
    )
    return Observation(exists=True, outcome=ObjectOutcome.FAILED, replicas=replicas)


def test_a_gang_that_runs_goes_on() -> None:
    assert ending(seen(ReplicaPhase.READY, ReplicaPhase.PENDING), 3) is None


def test_success_is_told_by_the_object_not_by_its_replicas() -> None:
    verdict = ending(seen(ReplicaPhase.READY, outcome=ObjectOutcome.SUCCEEDED), 3)
    assert verdict is not None
    assert (verdict.outcome, verdict.exit_code) == (StopOutcome.SUCCEEDED, 0)


@pytest.mark.parametrize(
    ("codes", "expected"), [((143, 3), 3), ((-9, 1, 2), 1), ((137, 143), 137), ((), None)]
)
def test_the_code_is_the_culprits_not_that_of_the_terminated(
    codes: tuple[int, ...], expected: int | None
) -> None:
    verdict = ending(failed(*codes), 3)
    assert verdict is not None
    assert verdict.reason is EndReason.REPLICA_FAILED
    assert verdict.exit_code == expected


def test_what_the_object_says_is_the_message() -> None:
    verdict = ending(seen(outcome=ObjectOutcome.FAILED, message="PyTorchJob x failed"), 3)
    assert verdict is not None
    assert verdict.message == "PyTorchJob x failed"


def test_a_result_outweighs_a_vanished_object() -> None:
    verdict = ending(seen(exists=False, outcome=ObjectOutcome.SUCCEEDED), 3)
    assert verdict is not None
    assert verdict.reason is EndReason.SUCCEEDED


@pytest.mark.parametrize(("recreations", "is_over"), [(3, False), (4, True)])
def test_restarts_are_counted_against_the_limit(recreations: int, *, is_over: bool) -> None:
    verdict = ending(seen(ReplicaPhase.READY, recreations=recreations), 3)
    assert (verdict is not None) == is_over


@pytest.mark.parametrize(
    ("launched", "started", "now", "expected"),
    [
        (0, None, 29, None),
        (0, None, 30, EndReason.START_TIMEOUT),
        (0, 25, 44, None),
        (0, 25, 45, EndReason.RUN_TIMEOUT),
        (None, None, 10**6, None),
    ],
)
def test_limits_count_from_their_own_moment(
    launched: int | None, started: int | None, now: int, expected: EndReason | None
) -> None:
    job: Any = {"run_timeout_seconds": 20, "start_timeout_seconds": 30}
    attempt: Any = {
        "launched_us": None if launched is None else launched * SECOND,
        "started_us": None if started is None else started * SECOND,
    }
    verdict = overdue(job, attempt, now * SECOND)
    assert (verdict.reason if verdict else None) is expected


def test_a_running_gang_without_a_limit_is_never_late() -> None:
    job: Any = {"run_timeout_seconds": None, "start_timeout_seconds": 1}
    attempt: Any = {"launched_us": 0, "started_us": 0}
    assert overdue(job, attempt, 10**15) is None


def test_a_gang_is_ready_when_every_pod_is_or_was() -> None:
    launch = a_launch()
    assert is_ready(launch, seen(ReplicaPhase.READY, ReplicaPhase.SUCCEEDED))
    assert not is_ready(launch, seen(ReplicaPhase.READY, ReplicaPhase.RUNNING))
    assert not is_ready(launch, seen(ReplicaPhase.READY))


def test_a_closed_gate_is_seen() -> None:
    assert has_closed_gate(seen(ReplicaPhase.READY, ReplicaPhase.GATED))
    assert not has_closed_gate(seen(ReplicaPhase.READY, ReplicaPhase.PENDING))
