"""Launches reserved gangs step by step; each step is stored before the next one is tried.

intended -> (find or create) created -> held_in_cluster -> unsuspended -> open. Killed at any
point, the next pass goes on from the stored step: a create meets its own object, the other calls
are idempotent. Many gangs take each step together, so that they share its transaction; what fails
for one of them holds up none of the others.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import filterfalse
from typing import Final, NamedTuple

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
from gateway.errors import ClusterRejected, ClusterUnreachable, Overloaded
from gateway.service.calls import Calls, may_call
from gateway.service.changes import Change, Stop, begin_stop
from gateway.service.context import SYSTEM_ACTOR, Gateway
from gateway.service.crash_points import reach
from gateway.service.launches import Work, load_all, ref_of
from gateway.service.moves import MOST_TOGETHER, Move, guard, store_moves
from gateway.service.quarantine import guarded

MAX_PAUSE_SECONDS = 60
INTENT_SECONDS = 5
"""How long after its intent was stored a create may still be sent; a later one is intended anew."""
LAUNCH_STATES = frozenset({JobState.RESERVED, JobState.LAUNCHING})


def launch_due(gateway: Gateway) -> int:
    """Bring every attempt that is on its way one or more steps further; gives how many moved."""
    with gateway.database.read() as connection:
        found = attempt_rows.launching_attempts(connection)
    due = [pair for pair in found if _is_due(gateway, *pair)]
    steps = _Steps(gateway, Calls(gateway))
    for start in range(0, len(due), MOST_TOGETHER):
        if steps.calls.are_over():
            break
        steps.take(due[start : start + MOST_TOGETHER])
    return len(steps.moved)


def _is_due(gateway: Gateway, job: Row, attempt: Row) -> bool:
    return JobState(job["state"]) in LAUNCH_STATES and attempt["retry_us"] <= gateway.clock.now_us()


class _Stage(NamedTuple):
    """One step, which everybody who is in its phase takes before anybody takes the next."""

    phase: AttemptPhase
    call: "Callable[[_Steps, Work], Move | None]"
    """Talks to the cluster; None when there is nothing to store before the next pass."""
    stored: str
    """Crash point behind the transaction."""


@dataclass(slots=True)
class _Steps:
    """The steps of all launches in one pass."""

    gateway: Gateway
    calls: Calls
    moved: set[int] = field(default_factory=set)
    """Attempts that made a step."""

    def take(self, pairs: Sequence[tuple[Row, Row]]) -> None:
        """Take the next steps of a batch, as far as they go now."""
        works = load_all(self.gateway, pairs)
        for stage in _STAGES:
            works = self._through(stage, works)

    def _through(self, stage: _Stage, works: Sequence[Work]) -> list[Work]:
        """Give those that may go on: who is in another phase, and who made this step."""
        is_here = partial(_is_in, stage.phase)
        moves = self.calls.each(partial(self._call, stage), filter(is_here, works))
        return [*filterfalse(is_here, works), *self._stored(stage, moves)]

    def _stored(self, stage: _Stage, moves: Sequence[Move]) -> list[Work]:
        """Store a step of several; gives those that may go on."""
        if not moves:
            return []
        made = store_moves(self.gateway, moves)
        reach(stage.stored)
        self.moved.update(each.attempt_id for each in made)
        # Whoever was stopped meanwhile takes care of what was made so far; nothing more is sent.
        return list(filter(_is_launching, made))

    def _call(self, stage: _Stage, work: Work) -> Move | None:
        """Make one gang's call, unless the pass is over."""
        if self.calls.are_over():
            return None
        return guarded(self.gateway, work.job, partial(self._try, stage, work))

    def _try(self, stage: _Stage, work: Work) -> Move | None:
        """Make one gang's call; what it meets ends or puts off that gang alone."""
        try:
            move = stage.call(self, work)
        # Never adopted and never deleted: it may be somebody's training.
        except ForeignObject as error:
            self._give_up(work, EndReason.FOREIGN_OBJECT, error.detail)
        except ClusterRejected as error:
            self._give_up(work, EndReason.REJECTED_BY_CLUSTER, error.detail)
        # The devices stay held: whether the call arrived is not known.
        except (ClusterUnreachable, Overloaded) as error:
            self.calls.failed()
            self._pause(work, error)
        else:
            self.calls.answered()
            return move
        return None

    def intend(self, work: Work) -> Move:
        """Find what an earlier try made, or store that a create is about to be sent."""
        # A create was sent before, and its answer was lost or never stored.
        if work.attempt["sent_us"] is not None:
            ref = self.gateway.backend.find(work.launch)
            if ref is not None:
                return _created(work, ref)
        # The intent before the call: a crash in between leaves something to look for.
        return Move(work=work, attempt={"sent_us": self.gateway.clock.now_us()})

    def create(self, work: Work) -> Move | None:
        """Send the create, unless its intent has grown old behind slow calls for others."""
        age_us = self.gateway.clock.now_us() - work.attempt["sent_us"]
        if age_us > INTENT_SECONDS * 1_000_000:
            return None
        ref = self.gateway.backend.create(work.launch)
        reach("after_create")
        return _created(work, ref)

    def hold(self, work: Work) -> Move:
        """Hold the devices in the cluster."""
        self.gateway.backend.hold(work.launch, ref_of(work.job, work.attempt))
        reach("after_hold")
        return Move(work=work, attempt={"phase": AttemptPhase.HELD_IN_CLUSTER})

    def unsuspend(self, work: Work) -> Move | None:
        """Make sure that the object is still ours, then start it."""
        ref = ref_of(work.job, work.attempt)
        # Unsuspending by name would start an object that somebody put in its place.
        seen = self.gateway.backend.observe(work.launch, ref)
        if not seen.exists or seen.uid != ref.uid:
            words = "the object was deleted by somebody else before it started"
            self._give_up(work, EndReason.DELETED_EXTERNALLY, words)
            return None
        if not may_call(self.gateway):
            return None
        # May be sent twice after a crash; the cluster takes the second for done.
        self.gateway.backend.unsuspend(work.launch, ref)
        reach("after_unsuspend")
        return _unsuspended(work, self.gateway.clock.now_us())

    def open(self, work: Work) -> Move | None:
        """Let the gang's pods onto their nodes, once all of them are there."""
        ref = ref_of(work.job, work.attempt)
        if not self.gateway.backend.open_gates(work.launch, ref):
            return None
        reach("after_open")
        return Move(work=work, attempt={"phase": AttemptPhase.OPEN, "launch_failures": 0})

    def _give_up(self, work: Work, reason: EndReason, message: str) -> None:
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
        self.moved.add(work.attempt_id)

    def _pause(self, work: Work, error: ClusterUnreachable | Overloaded) -> None:
        """Wait a little longer after each failure; the job stays reserved and says why."""
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


def _is_in(phase: AttemptPhase, work: Work) -> bool:
    return work.phase is phase


def _is_launching(work: Work) -> bool:
    return work.state in LAUNCH_STATES


def _created(work: Work, ref: ObjectRef) -> Move:
    values = {"phase": AttemptPhase.CREATED, "object_uid": ref.uid, "launch_failures": 0}
    return Move(work=work, attempt=values)


def _unsuspended(work: Work, at_us: int) -> Move:
    values = {"phase": AttemptPhase.UNSUSPENDED, "launched_us": at_us, "launch_failures": 0}
    change = Change(
        event=JobEvent.UNSUSPEND,
        actor=SYSTEM_ACTOR,
        at_us=at_us,
        kind="launching",
        detail=work.attempt["object_name"],
        values={"reason": None, "message": ""},
    )
    return Move(work=work, attempt=values, change=change)


_STAGES: Final = (
    _Stage(AttemptPhase.INTENDED, _Steps.intend, "after_intent"),
    _Stage(AttemptPhase.INTENDED, _Steps.create, "after_record"),
    _Stage(AttemptPhase.CREATED, _Steps.hold, "after_hold_recorded"),
    _Stage(AttemptPhase.HELD_IN_CLUSTER, _Steps.unsuspend, "after_unsuspend_recorded"),
    _Stage(AttemptPhase.UNSUSPENDED, _Steps.open, "after_open_recorded"),
)
