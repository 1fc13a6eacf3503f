"""Turns what is seen of live gangs into events: ready, ended, vanished, too late, gone."""

from functools import partial

from gateway.backends.base import ObjectOutcome, Observation, ReplicaPhase
from gateway.core.vocabulary import (
    AttemptPhase,
    EndReason,
    JobEvent,
    JobState,
    StopOutcome,
)
from gateway.db import attempts as attempt_rows
from gateway.db import jobs as job_rows
from gateway.db.engine import Writer
from gateway.db.leases import require_epoch
from gateway.errors import ClusterUnreachable
from gateway.service.changes import Change, Stop, apply_change, begin_stop
from gateway.service.context import SYSTEM_ACTOR, Gateway
from gateway.service.crash_points import reach
from gateway.service.launches import ref_of
from gateway.service.launching import Work, live_work
from gateway.service.quarantine import guarded
from gateway.service.stopping import finish_stop

STARTED_STATES = frozenset({JobState.LAUNCHING, JobState.RUNNING})
MOST_TIMEOUTS = 500


def reconcile_due(gateway: Gateway) -> int:
    """Look at every live gang once; gives how many changed state."""
    changed = expire_waiting(gateway)
    for work in live_work(gateway):
        state = JobState(work.job["state"])
        if not gateway.leadership.outlives(gateway.settings.cluster_call_seconds):
            break
        if state is JobState.STOPPING:
            changed += guarded(gateway, work.job, partial(finish_stop, gateway, work))
        elif state in STARTED_STATES:
            changed += guarded(gateway, work.job, partial(watch, gateway, work))
    if changed:
        gateway.wake.set()
    return changed


def watch(gateway: Gateway, work: Work) -> bool:
    """Look at one started gang; True when its state changed."""
    ref = ref_of(work.job, work.attempt)
    try:
        seen = gateway.backend.observe(work.launch, ref)
        stop = judge(gateway, work, seen)
        if stop is None and _has_closed_gate(work, seen):
            gateway.backend.open_gates(work.launch, ref)
    except ClusterUnreachable:
        return False
    if stop is not None:
        _store_stop(gateway, work, stop)
        reach("after_stop_recorded")
        return True
    if _is_ready(work, seen):
        _store_running(gateway, work)
        reach("after_running")
        return True
    return False


def judge(gateway: Gateway, work: Work, seen: Observation) -> Stop | None:
    """Say whether and why this attempt is over."""
    outcome, reason, message = _ending(gateway, work, seen)
    if reason is None:
        return None
    return Stop(
        outcome=outcome,
        end_reason=reason,
        actor=SYSTEM_ACTOR,
        at_us=gateway.clock.now_us(),
        message=message,
        exit_code=exit_code(seen, outcome),
    )


def _ending(
    gateway: Gateway, work: Work, seen: Observation
) -> tuple[StopOutcome, EndReason | None, str]:
    limit = gateway.settings.max_pod_restarts
    if seen.outcome is ObjectOutcome.FAILED:
        return StopOutcome.FAILED, EndReason.REPLICA_FAILED, seen.message or _failure(seen)
    if seen.outcome is ObjectOutcome.SUCCEEDED:
        return StopOutcome.SUCCEEDED, EndReason.SUCCEEDED, ""
    if not seen.exists:
        words = "the object was deleted by somebody else"
        return StopOutcome.FAILED, EndReason.DELETED_EXTERNALLY, words
    if seen.recreations > limit:
        words = f"{seen.recreations} pods were re-created, {limit} are allowed"
        return StopOutcome.FAILED, EndReason.TOO_MANY_RESTARTS, words
    return StopOutcome.FAILED, *_timeout(gateway, work)


def _timeout(gateway: Gateway, work: Work) -> tuple[EndReason | None, str]:
    now_us, job = gateway.clock.now_us(), work.job
    limit, started = job["run_timeout_seconds"], job["started_us"]
    if started is not None and limit is not None and now_us - started >= limit * 1_000_000:
        return EndReason.RUN_TIMEOUT, f"ran for more than {limit} s"
    limit, launched = job["start_timeout_seconds"], work.attempt["launched_us"]
    is_late = launched is not None and now_us - launched >= limit * 1_000_000
    if started is None and is_late:
        return EndReason.START_TIMEOUT, f"the gang was not ready within {limit} s"
    return None, ""


def exit_code(seen: Observation, outcome: StopOutcome) -> int | None:
    """Give the code that stands for the attempt: the first failed replica's, by rank."""
    codes = [replica.exit_code for replica in seen.replicas if replica.exit_code is not None]
    if outcome is StopOutcome.SUCCEEDED:
        return 0
    return next((code for code in codes if code), None)


def _failure(seen: Observation) -> str:
    for replica in seen.replicas:
        if replica.phase is ReplicaPhase.FAILED:
            code = "" if replica.exit_code is None else f" with exit code {replica.exit_code}"
            return f"{replica.pod_set} {replica.index} failed{code}"
    return "a replica failed"


def _has_closed_gate(work: Work, seen: Observation) -> bool:
    return work.attempt["phase"] == AttemptPhase.OPEN and any(
        replica.phase is ReplicaPhase.GATED for replica in seen.replicas
    )


def _is_ready(work: Work, seen: Observation) -> bool:
    """Whether the whole gang is ready; a pod that already succeeded was."""
    good = {ReplicaPhase.READY, ReplicaPhase.SUCCEEDED}
    ready = {(r.pod_set, r.index) for r in seen.replicas if r.phase in good}
    wanted = {(pod.pod_set, pod.index) for pod in work.launch.pods}
    return work.job["state"] == JobState.LAUNCHING and wanted <= ready


def _store_stop(gateway: Gateway, work: Work, stop: Stop) -> None:
    def store(writer: Writer) -> None:
        require_epoch(writer, gateway.leadership.epoch or -1)
        begin_stop(writer, work.job, stop)

    gateway.database.run_write(store)


def _store_running(gateway: Gateway, work: Work) -> None:
    at_us = gateway.clock.now_us()

    def store(writer: Writer) -> None:
        require_epoch(writer, gateway.leadership.epoch or -1)
        change = Change(
            event=JobEvent.READY,
            actor=SYSTEM_ACTOR,
            at_us=at_us,
            kind="running",
            detail=f"all {len(work.launch.pods)} pods are ready",
            values={"started_us": at_us},
        )
        apply_change(writer, work.job, change)
        attempt_rows.change_attempt(writer, work.attempt, {"started_us": at_us})

    gateway.database.run_write(store)


def expire_waiting(gateway: Gateway) -> int:
    """End jobs that waited longer than their queue timeout."""
    at_us = gateway.clock.now_us()

    def expire(writer: Writer) -> int:
        overdue = job_rows.overdue_waiting(writer.connection, at_us, MOST_TIMEOUTS)
        for job in overdue:
            words = f"waited longer than {job['queue_timeout_seconds']} s"
            change = Change(
                event=JobEvent.FAIL_WAITING,
                actor=SYSTEM_ACTOR,
                at_us=at_us,
                kind="failed",
                detail=words,
                values={"reason": None, "end_reason": EndReason.QUEUE_TIMEOUT, "message": words},
            )
            apply_change(writer, job, change)
        return len(overdue)

    return gateway.database.run_write(expire)
