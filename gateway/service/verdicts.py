"""Says from one look at a gang whether and why its attempt is over, or that it runs. Pure."""

from dataclasses import dataclass

from gateway.backends.base import Launch, ObjectOutcome, Observation, ReplicaPhase, ReplicaSeen
from gateway.core.vocabulary import EndReason, StopOutcome
from gateway.db.engine import Row

TERMINATED_CODES = frozenset({137, 143, -9, -15})
"""Exit codes of replicas that were told to go because another one failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """How an attempt ends."""

    outcome: StopOutcome
    reason: EndReason
    message: str = ""
    exit_code: int | None = None


def ending(seen: Observation, max_pod_restarts: int) -> Verdict | None:
    """Give the end that was seen; None while the gang may go on."""
    if seen.outcome is ObjectOutcome.SUCCEEDED:
        return Verdict(outcome=StopOutcome.SUCCEEDED, reason=EndReason.SUCCEEDED, exit_code=0)
    if seen.outcome is ObjectOutcome.FAILED:
        return _failure(seen)
    if not seen.exists:
        return _failed(EndReason.DELETED_EXTERNALLY, "the object was deleted by somebody else")
    if seen.recreations > max_pod_restarts:
        words = f"{seen.recreations} pods were re-created, {max_pod_restarts} are allowed"
        return _failed(EndReason.TOO_MANY_RESTARTS, words)
    return None


def overdue(job: Row, attempt: Row, now_us: int) -> Verdict | None:
    """Give the end by a timeout; None within the limits.

    The run limit counts from all pods ready, the start limit from the unsuspended object until
    then.
    """
    started = attempt["started_us"]
    run_limit, start_limit = job["run_timeout_seconds"], job["start_timeout_seconds"]
    if _has_passed(run_limit, started, now_us):
        return _failed(EndReason.RUN_TIMEOUT, f"ran for more than {run_limit} s")
    if started is None and _has_passed(start_limit, attempt["launched_us"], now_us):
        return _failed(EndReason.START_TIMEOUT, f"the gang was not ready within {start_limit} s")
    return None


def _has_passed(limit_seconds: int | None, since_us: int | None, now_us: int) -> bool:
    if limit_seconds is None or since_us is None:
        return False
    return now_us - since_us >= limit_seconds * 1_000_000


def is_ready(launch: Launch, seen: Observation) -> bool:
    """Whether the whole gang is ready; a replica that has succeeded already was."""
    good = {ReplicaPhase.READY, ReplicaPhase.SUCCEEDED}
    ready = {(replica.pod_set, replica.index) for replica in seen.replicas if replica.phase in good}
    return {(pod.pod_set, pod.index) for pod in launch.pods} <= ready


def has_closed_gate(seen: Observation) -> bool:
    """Whether a replica waits for its gate to be opened."""
    return any(replica.phase is ReplicaPhase.GATED for replica in seen.replicas)


def _failed(reason: EndReason, message: str) -> Verdict:
    return Verdict(outcome=StopOutcome.FAILED, reason=reason, message=message)


def _failure(seen: Observation) -> Verdict:
    if seen.is_lost:
        return _failed(EndReason.GANG_LOST, seen.message or "its pods vanished without a result")
    culprit = _culprit(seen)
    words = seen.message or (_words(culprit) if culprit else "a replica failed")
    return Verdict(
        outcome=StopOutcome.FAILED,
        reason=EndReason.REPLICA_FAILED,
        message=words,
        exit_code=culprit.exit_code if culprit else None,
    )


def _culprit(seen: Observation) -> ReplicaSeen | None:
    """Give the replica that failed by itself, before those that were terminated for it."""
    failed = (replica for replica in seen.replicas if replica.exit_code)
    return min(failed, key=lambda replica: replica.exit_code in TERMINATED_CODES, default=None)


def _words(replica: ReplicaSeen) -> str:
    return f"{replica.pod_set} {replica.index} failed with exit code {replica.exit_code}"
