"""Launches reserved gangs step by step; each step is stored before the next one is tried.

intended -> (find or create) created -> held_in_cluster -> unsuspended -> open. Killed at any
point, the next pass goes on from the stored step: a create meets its own object, the other calls
are idempotent.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from gateway.backends.base import ForeignObject, ObjectRef
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
from gateway.service.launches import Work, live_work, load, ref_of
from gateway.service.quarantine import guarded

MAX_PAUSE_SECONDS = 60
MOST_OUTAGES = 3
"""Calls in a row that may fail before a pass asks whether the cluster answers at all."""
LAUNCH_STATES = frozenset({JobState.RESERVED, JobState.LAUNCHING})


def launch_due(gateway: Gateway) -> int:
    """Bring every attempt that is on its way one or more steps further; gives how many moved."""
    moved = outages = 0
    for job, attempt in live_work(gateway):
        # Each call to a dead cluster costs its timeout, and the lease goes on running down.
        if is_cut_off(gateway, outages) or not may_call(gateway):
            break
        if _is_due(gateway, job, attempt):
            steps = _Steps(gateway)
            moved += guarded(gateway, job, partial(steps.take, job, attempt))
            outages = outages + 1 if steps.met_outage else 0
    return moved


def may_call(gateway: Gateway) -> bool:
    """Whether the lease surely outlives one more call to the cluster."""
    return gateway.leadership.outlives(gateway.settings.cluster_call_seconds)


def is_cut_off(gateway: Gateway, outages: int) -> bool:
    """Whether a pass should end, since each further call would only wait for its timeout."""
    return outages >= MOST_OUTAGES and not gateway.backend.is_reachable()


def _is_due(gateway: Gateway, job: Row, attempt: Row) -> bool:
    return (
        JobState(job["state"]) in LAUNCH_STATES
        and attempt["phase"] != AttemptPhase.OPEN
        and attempt["retry_us"] <= gateway.clock.now_us()
    )


@dataclass(slots=True)
class _Steps:
    """The steps of one launch in one pass."""

    gateway: Gateway
    met_outage: bool = False

    def take(self, job: Row, attempt: Row) -> bool:
        """Take the next steps, as far as they go now; True when one was made."""
        work: Work | None = load(self.gateway, job, attempt)
        has_moved = False
        while work is not None and may_call(self.gateway):
            current = work
            try:
                work = self._step(current)
            # Never adopted and never deleted: it may be somebody's training.
            except ForeignObject as error:
                return self._give_up(current, EndReason.FOREIGN_OBJECT, error.detail)
            except ClusterRejected as error:
                return self._give_up(current, EndReason.REJECTED_BY_CLUSTER, error.detail)
            # The devices stay held: whether the call arrived is not known.
            except (ClusterUnreachable, Overloaded) as error:
                self._pause(current, error)
                return has_moved
            has_moved |= work is not None
        return has_moved

    def _step(self, work: Work) -> Work | None:
        """Take one step; None when there is nothing to do before the next pass."""
        steps: Mapping[AttemptPhase, Callable[[Work], Work | None]] = {
            AttemptPhase.INTENDED: self._create,
            AttemptPhase.CREATED: self._hold,
            AttemptPhase.HELD_IN_CLUSTER: self._unsuspend,
            AttemptPhase.UNSUSPENDED: self._open,
        }
        step = steps.get(AttemptPhase(work.attempt["phase"]))
        return step(work) if step else None

    def _create(self, work: Work) -> Work | None:
        """Find what an earlier try made, or store that a create is sent and send it."""
        ref = None
        # A create was sent before, and its answer was lost or never stored.
        if work.attempt["sent_us"] is not None:
            ref = self.gateway.backend.find(work.launch)
        if ref is None:
            # The intent before the call: a crash in between leaves something to look for.
            sent = self._record(work, {"sent_us": self.gateway.clock.now_us()})
            reach("after_intent")
            if not may_call(self.gateway):
                return None
            work, ref = sent, self.gateway.backend.create(work.launch)
            reach("after_create")
        values = {"phase": AttemptPhase.CREATED, "object_uid": ref.uid, "launch_failures": 0}
        recorded = self._record(work, values)
        reach("after_record")
        return recorded

    def _hold(self, work: Work) -> Work:
        self.gateway.backend.hold(work.launch, ref_of(work.job, work.attempt))
        reach("after_hold")
        held = self._record(work, {"phase": AttemptPhase.HELD_IN_CLUSTER})
        reach("after_hold_recorded")
        return held

    def _unsuspend(self, work: Work) -> Work | None:
        """Make sure that the object is still ours, then start it."""
        ref = ref_of(work.job, work.attempt)
        # Unsuspending by name would start an object that somebody put in its place.
        if not self._is_there(work, ref):
            words = "the object was deleted by somebody else before it started"
            self._give_up(work, EndReason.DELETED_EXTERNALLY, words)
            return None
        if not may_call(self.gateway):
            return None
        # May be sent twice after a crash; the cluster takes the second for done.
        self.gateway.backend.unsuspend(work.launch, ref)
        reach("after_unsuspend")
        self.gateway.database.run_write(partial(self._store_unsuspended, work))
        reach("after_unsuspend_recorded")
        return self._reread(work)

    def _is_there(self, work: Work, ref: ObjectRef) -> bool:
        seen = self.gateway.backend.observe(work.launch, ref)
        return seen.exists and seen.uid == ref.uid

    def _store_unsuspended(self, work: Work, writer: Writer) -> None:
        at_us = self.gateway.clock.now_us()
        guard(self.gateway, writer)
        values = {
            "phase": AttemptPhase.UNSUSPENDED,
            "launched_us": at_us,
            "launch_failures": 0,
        }
        attempt_rows.change_attempt(writer, work.attempt, values)
        change = Change(
            event=JobEvent.UNSUSPEND,
            actor=SYSTEM_ACTOR,
            at_us=at_us,
            kind="launching",
            detail=work.attempt["object_name"],
            values={"reason": None, "message": ""},
        )
        apply_change(writer, work.job, change)

    def _open(self, work: Work) -> Work | None:
        ref = ref_of(work.job, work.attempt)
        if not self.gateway.backend.open_gates(work.launch, ref):
            return None
        reach("after_open")
        recorded = self._record(work, {"phase": AttemptPhase.OPEN, "launch_failures": 0})
        reach("after_open_recorded")
        return recorded

    def _record(self, work: Work, values: Mapping[str, Any]) -> Work:
        """Store a step. Raises StaleVersion when the job was stopped meanwhile; the step stays."""

        def store(writer: Writer) -> None:
            guard(self.gateway, writer)
            attempt_rows.change_attempt(writer, work.attempt, values)

        self.gateway.database.run_write(store)
        return self._reread(work)

    def _reread(self, work: Work) -> Work:
        with self.gateway.database.read() as connection:
            job = job_rows.get_job_head(connection, work.job["id"])
            attempt = attempt_rows.get_attempt(connection, work.attempt["id"])
        if job is None or attempt is None or JobState(job["state"]) not in LAUNCH_STATES:
            # Whoever stopped it takes care of what was made so far; here nothing more may be sent.
            raise StaleVersion("the job was stopped meanwhile")
        return Work(job, attempt, work.launch)

    def _give_up(self, work: Work, reason: EndReason, message: str) -> bool:
        """End the attempt for good: the cluster will not take it."""
        stop = Stop(
            outcome=StopOutcome.FAILED,
            end_reason=reason,
            actor=SYSTEM_ACTOR,
            at_us=self.gateway.clock.now_us(),
            message=message,
        )

        def store(writer: Writer) -> None:
            guard(self.gateway, writer)
            job = job_rows.get_job_head(writer.connection, work.job["id"])
            if job is not None and JobState(job["state"]) in LAUNCH_STATES:
                begin_stop(writer, job, stop)

        self.gateway.database.run_write(store)
        return True

    def _pause(self, work: Work, error: ClusterUnreachable | Overloaded) -> None:
        """Wait a little longer after each failure; the job stays reserved and says why."""
        self.met_outage = True
        failures = work.attempt["launch_failures"] + 1
        # 2, 4, 8 ... 60 seconds: a cluster that comes back is not met by all attempts at once.
        pause_us = min(MAX_PAUSE_SECONDS, 2**failures) * 1_000_000
        throttled = isinstance(error, Overloaded)
        reason = Reason.LAUNCH_THROTTLED if throttled else Reason.CLUSTER_UNREACHABLE
        retry_us = self.gateway.clock.now_us() + pause_us

        def store(writer: Writer) -> None:
            guard(self.gateway, writer)
            values = {"launch_failures": failures, "retry_us": retry_us}
            attempt_rows.change_attempt(writer, work.attempt, values)
            job_rows.set_waiting_message(writer, work.job["id"], reason, error.detail)

        self.gateway.database.run_write(store)


def guard(gateway: Gateway, writer: Writer) -> None:
    """Make sure that this process leads, until the transaction ends; raises StaleLeader."""
    require_epoch(writer, gateway.leadership.epoch or -1)
