"""Launches reserved gangs step by step; each step is stored before the next one is tried.

intended -> (find or create) created -> held_in_cluster -> unsuspended -> open. Killed at any
point, the next pass goes on from the stored step: a create meets its own object, the other calls
are idempotent.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from gateway.backends.base import ForeignObject, Launch
from gateway.core.vocabulary import (
    AttemptPhase,
    EndReason,
    JobEvent,
    JobState,
    Reason,
    StopOutcome,
)
from gateway.db import attempts as attempt_rows
from gateway.db import jobs as job_rows
from gateway.db.engine import Row, Writer
from gateway.db.leases import require_epoch
from gateway.errors import ClusterRejected, ClusterUnreachable, Overloaded, StaleVersion
from gateway.service.changes import Change, Stop, apply_change, begin_stop
from gateway.service.context import SYSTEM_ACTOR, Gateway
from gateway.service.crash_points import reach
from gateway.service.launches import launch_of, ref_of
from gateway.service.quarantine import guarded

MAX_PAUSE_SECONDS = 60
LAUNCH_STATES = frozenset({JobState.RESERVED, JobState.LAUNCHING})


@dataclass(frozen=True, slots=True)
class Work:
    """One attempt with its job, as read at the start of a pass."""

    job: Row
    attempt: Row
    launch: Launch


def launch_due(gateway: Gateway) -> int:
    """Bring every attempt that is on its way one or more steps further; gives how many moved."""
    due = [
        work
        for work in live_work(gateway)
        if JobState(work.job["state"]) in LAUNCH_STATES
        and work.attempt["phase"] != AttemptPhase.OPEN
        and work.attempt["retry_us"] <= gateway.clock.now_us()
    ]
    return sum(guarded(gateway, work.job, partial(advance, gateway, work)) for work in due)


def live_work(gateway: Gateway) -> list[Work]:
    """Give every live attempt with its job."""
    with gateway.database.read() as connection:
        found = []
        for attempt in attempt_rows.live_attempts(connection):
            job = job_rows.get_job_by_row(connection, attempt["job_id"])
            if job is not None and not job["is_quarantined"]:
                found.append(Work(job, attempt, launch_of(connection, job, attempt)))
    return found


def advance(gateway: Gateway, work: Work) -> bool:
    """Take the next steps of one launch, as far as they go now; True when one was made."""
    has_moved = False
    while True:
        if not gateway.leadership.outlives(gateway.settings.cluster_call_seconds):
            return has_moved
        try:
            following = _step(gateway, work)
        except ForeignObject as error:
            return _give_up(gateway, work, EndReason.FOREIGN_OBJECT, error.detail)
        except ClusterRejected as error:
            return _give_up(gateway, work, EndReason.REJECTED_BY_CLUSTER, error.detail)
        except (ClusterUnreachable, Overloaded) as error:
            _pause(gateway, work, error)
            return has_moved
        except StaleVersion:
            return True
        if following is None:
            return has_moved
        work, has_moved = following, True


def _step(gateway: Gateway, work: Work) -> Work | None:
    """Take one step; None when there is nothing to do before the next pass."""
    match AttemptPhase(work.attempt["phase"]):
        case AttemptPhase.INTENDED:
            return _create(gateway, work)
        case AttemptPhase.CREATED:
            gateway.backend.hold(work.launch, ref_of(work.job, work.attempt))
            reach("after_hold")
            return _record(gateway, work, {"phase": AttemptPhase.HELD_IN_CLUSTER})
        case AttemptPhase.HELD_IN_CLUSTER:
            return _unsuspend(gateway, work)
        case AttemptPhase.UNSUSPENDED:
            return _open(gateway, work)
        case AttemptPhase.OPEN | AttemptPhase.CLOSED:
            return None


def _create(gateway: Gateway, work: Work) -> Work:
    """Store that a create is about to be sent, then find or create, then store the UID."""
    work = _record(gateway, work, {"sent_us": gateway.clock.now_us()})
    reach("after_intent")
    ref = gateway.backend.find(work.launch) or gateway.backend.create(work.launch)
    reach("after_create")
    recorded = _record(gateway, work, {"phase": AttemptPhase.CREATED, "object_uid": ref.uid})
    reach("after_record")
    return recorded


def _unsuspend(gateway: Gateway, work: Work) -> Work:
    gateway.backend.unsuspend(work.launch, ref_of(work.job, work.attempt))
    reach("after_unsuspend")
    at_us = gateway.clock.now_us()

    def store(writer: Writer) -> None:
        _guard(gateway, writer)
        attempt_rows.change_attempt(
            writer, work.attempt, {"phase": AttemptPhase.UNSUSPENDED, "launched_us": at_us}
        )
        change = Change(
            event=JobEvent.UNSUSPEND,
            actor=SYSTEM_ACTOR,
            at_us=at_us,
            kind="launching",
            detail=work.attempt["object_name"],
            values={"reason": None, "message": ""},
        )
        apply_change(writer, work.job, change)

    gateway.database.run_write(store)
    reach("after_unsuspend_recorded")
    return _reread(gateway, work)


def _open(gateway: Gateway, work: Work) -> Work | None:
    if not gateway.backend.open_gates(work.launch, ref_of(work.job, work.attempt)):
        return None
    reach("after_open")
    recorded = _record(gateway, work, {"phase": AttemptPhase.OPEN})
    reach("after_open_recorded")
    return recorded


def _record(gateway: Gateway, work: Work, values: Mapping[str, Any]) -> Work:
    def store(writer: Writer) -> None:
        _guard(gateway, writer)
        attempt_rows.change_attempt(writer, work.attempt, {"launch_failures": 0, **values})

    gateway.database.run_write(store)
    return _reread(gateway, work)


def _guard(gateway: Gateway, writer: Writer) -> None:
    require_epoch(writer, gateway.leadership.epoch or -1)


def _reread(gateway: Gateway, work: Work) -> Work:
    with gateway.database.read() as connection:
        job = job_rows.get_job_by_row(connection, work.job["id"])
        attempt = attempt_rows.get_attempt(connection, work.attempt["id"])
    if job is None or attempt is None or JobState(job["state"]) not in LAUNCH_STATES:
        raise StaleVersion("the job was stopped meanwhile")
    return Work(job, attempt, work.launch)


def _give_up(gateway: Gateway, work: Work, reason: EndReason, message: str) -> bool:
    """End the attempt for good: the cluster will not take it."""
    stop = Stop(
        outcome=StopOutcome.FAILED,
        end_reason=reason,
        actor=SYSTEM_ACTOR,
        at_us=gateway.clock.now_us(),
        message=message,
    )

    def store(writer: Writer) -> None:
        _guard(gateway, writer)
        job = job_rows.get_job_by_row(writer.connection, work.job["id"])
        if job is not None and JobState(job["state"]) in LAUNCH_STATES:
            begin_stop(writer, job, stop)

    gateway.database.run_write(store)
    return True


def _pause(gateway: Gateway, work: Work, error: ClusterUnreachable | Overloaded) -> None:
    """Wait a little longer after each failure; the job stays reserved and says why."""
    failures = work.attempt["launch_failures"] + 1
    pause = min(MAX_PAUSE_SECONDS, 2 ** min(failures, 6)) * 1_000_000
    throttled = isinstance(error, Overloaded)
    reason = Reason.LAUNCH_THROTTLED if throttled else Reason.CLUSTER_UNREACHABLE

    def store(writer: Writer) -> None:
        _guard(gateway, writer)
        attempt_rows.change_attempt(
            writer,
            work.attempt,
            {"launch_failures": failures, "retry_us": gateway.clock.now_us() + pause},
        )
        job_rows.set_waiting_message(writer, work.job["id"], reason, error.detail)

    gateway.database.run_write(store)
