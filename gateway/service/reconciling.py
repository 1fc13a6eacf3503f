"""Turns what is seen of live gangs into events: ready, ended, vanished, too late, gone."""

from functools import partial

import structlog

from gateway.backends.base import Observation
from gateway.core.vocabulary import AttemptPhase, EndReason, JobEvent, JobState
from gateway.db import attempts as attempt_rows
from gateway.db.engine import Row, Writer
from gateway.db.overdue import overdue_waiting
from gateway.errors import ClusterRejected, ClusterUnreachable
from gateway.service.changes import Change, Stop, apply_change, begin_stop
from gateway.service.context import SYSTEM_ACTOR, Gateway
from gateway.service.crash_points import reach
from gateway.service.launches import Work, live_work, load, ref_of
from gateway.service.launching import guard, is_cut_off, may_call
from gateway.service.quarantine import guarded
from gateway.service.stopping import finish_stop
from gateway.service.verdicts import Verdict, ending, has_closed_gate, is_ready, overdue

log = structlog.get_logger()
STARTED_STATES = frozenset({JobState.LAUNCHING, JobState.RUNNING})
MOST_TIMEOUTS = 500


def reconcile_due(gateway: Gateway) -> int:
    """Look at every live gang once; gives how many changed state."""
    # First, because it needs no cluster and would not be reached while one is down.
    changed, outages = expire_waiting(gateway), 0
    for job, attempt in live_work(gateway):
        if is_cut_off(gateway, outages) or not may_call(gateway):
            break
        try:
            changed += guarded(gateway, job, partial(_look, gateway, job, attempt))
            outages = 0
        except ClusterUnreachable:
            outages += 1  # what is held stays held until the cluster answers
        except ClusterRejected as error:
            log.warning("look_refused", job_id=job["uid"], detail=error.detail)
    if changed:
        gateway.wake.set()
    return changed


def _look(gateway: Gateway, job: Row, attempt: Row) -> bool:
    state = JobState(job["state"])
    if state is JobState.STOPPING:
        return finish_stop(gateway, load(gateway, job, attempt))
    if state in STARTED_STATES:
        return watch(gateway, load(gateway, job, attempt))
    return False


def watch(gateway: Gateway, work: Work) -> bool:
    """Look at one started gang; True when its state changed."""
    seen = gateway.backend.observe(work.launch, ref_of(work.job, work.attempt))
    # What was seen comes before what the clock says: a gang that just succeeded is not late.
    verdict = ending(seen, gateway.settings.max_pod_restarts) or overdue(
        work.job, work.attempt, gateway.clock.now_us()
    )
    if verdict is not None:
        _store_end(gateway, work, verdict)
        reach("after_stop_recorded")
        return True
    return work.attempt["phase"] == AttemptPhase.OPEN and _advance(gateway, work, seen)


def _advance(gateway: Gateway, work: Work, seen: Observation) -> bool:
    """Do what a gang that was opened needs; True when it is running from now on."""
    if has_closed_gate(seen) and may_call(gateway):
        # A re-created replica; it gets its old place, alone.
        gateway.backend.open_gates(work.launch, ref_of(work.job, work.attempt))
    if work.job["state"] == JobState.LAUNCHING and is_ready(work.launch, seen):
        _store_running(gateway, work)
        reach("after_running")
        return True
    return False


def _store_end(gateway: Gateway, work: Work, verdict: Verdict) -> None:
    stop = Stop(
        outcome=verdict.outcome,
        end_reason=verdict.reason,
        actor=SYSTEM_ACTOR,
        at_us=gateway.clock.now_us(),
        message=verdict.message,
        exit_code=verdict.exit_code,
    )

    def store(writer: Writer) -> None:
        # A former leader may have seen this late; only the present one may write it.
        guard(gateway, writer)
        begin_stop(writer, work.job, stop)

    gateway.database.run_write(store)


def _store_running(gateway: Gateway, work: Work) -> None:
    at_us = gateway.clock.now_us()
    change = Change(
        event=JobEvent.READY,
        actor=SYSTEM_ACTOR,
        at_us=at_us,
        kind="running",
        detail=f"all {len(work.launch.pods)} pods are ready",
        values={"started_us": at_us},
    )

    def store(writer: Writer) -> None:
        guard(gateway, writer)
        apply_change(writer, work.job, change)
        attempt_rows.change_attempt(writer, work.attempt, {"started_us": at_us})

    gateway.database.run_write(store)


def expire_waiting(gateway: Gateway) -> int:
    """End jobs that waited longer than their queue timeout."""
    at_us = gateway.clock.now_us()
    with gateway.database.read() as connection:
        overdue_jobs = overdue_waiting(connection, at_us, MOST_TIMEOUTS)
    return sum(guarded(gateway, job, partial(_expire, gateway, job)) for job in overdue_jobs)


def _expire(gateway: Gateway, job: Row) -> bool:
    at_us = gateway.clock.now_us()
    words = f"waited longer than {job['queue_timeout_seconds']} s"
    change = Change(
        event=JobEvent.FAIL_WAITING,
        actor=SYSTEM_ACTOR,
        at_us=at_us,
        kind="failed",
        detail=words,
        values={"reason": None, "end_reason": EndReason.QUEUE_TIMEOUT, "message": words},
    )

    def store(writer: Writer) -> None:
        guard(gateway, writer)
        apply_change(writer, job, change)

    gateway.database.run_write(store)
    return True
