"""Turns what is seen of live gangs into events: ready, ended, vanished, too late, gone."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import filterfalse
from typing import TypeVar

import structlog

from gateway.core.vocabulary import AttemptPhase, EndReason, JobEvent, JobState
from gateway.db.engine import Row, Writer
from gateway.db.overdue import overdue_waiting
from gateway.errors import ClusterRejected, ClusterUnreachable
from gateway.service.calls import Calls, may_call
from gateway.service.changes import Change, Stop, apply_change, stop_change
from gateway.service.context import SYSTEM_ACTOR, Gateway
from gateway.service.crash_points import reach
from gateway.service.launches import Work, live_work, load_all, ref_of
from gateway.service.moves import MOST_TOGETHER, Move, guard, store_moves
from gateway.service.quarantine import guarded
from gateway.service.stopping import leaving, settle_stops
from gateway.service.verdicts import Verdict, ending, has_closed_gate, is_ready, overdue

Result = TypeVar("Result")
log = structlog.get_logger()
WATCHED_STATES = frozenset({JobState.LAUNCHING, JobState.RUNNING, JobState.STOPPING})
MOST_TIMEOUTS = 500


def reconcile_due(gateway: Gateway) -> int:
    """Look at every live gang once; gives how many changed state."""
    # First, because it needs no cluster and would not be reached while one is down.
    changed = expire_waiting(gateway)
    live, looks = live_work(gateway), _Looks(gateway, Calls(gateway))
    for start in range(0, len(live), MOST_TOGETHER):
        if looks.calls.are_over():
            break
        looks.take(live[start : start + MOST_TOGETHER])
    changed += len(looks.changed)
    if changed:
        gateway.wake.set()
    return changed


@dataclass(slots=True)
class _Looks:
    """The looks at all live gangs in one pass."""

    gateway: Gateway
    calls: Calls
    changed: set[int] = field(default_factory=set)
    """Attempts whose job changed state."""

    def take(self, pairs: Sequence[tuple[Row, Row]]) -> None:
        """Look at a batch; what ended is freed at once where its pods are gone."""
        works = list(filter(_is_watched, load_all(self.gateway, pairs)))
        ended = self._stored(self._looked(watch, filterfalse(_is_stopping, works)))
        # With those that ended just now: nobody waits for the next pass to get their devices.
        stopping = filter(_is_stopping, [*works, *ended])
        freed = settle_stops(self.gateway, self._looked(leaving, stopping))
        self.changed |= freed
        if freed:
            self.gateway.wake.hurry()

    def _looked(
        self, look: Callable[[Gateway, Work], Result | None], works: Iterable[Work]
    ) -> list[Result]:
        """Look at gangs; gives what is to be stored of them."""
        return self.calls.each(partial(self._call, look), works)

    def _stored(self, moves: Sequence[Move]) -> list[Work]:
        stored = store_moves(self.gateway, moves)
        if stored:
            reach("after_running")
            reach("after_stop_recorded")
        self.changed.update(each.attempt_id for each in stored)
        return stored

    def _call(self, look: Callable[[Gateway, Work], Result | None], work: Work) -> Result | None:
        """Look at one gang, unless the pass is over."""
        if self.calls.are_over():
            return None
        try:
            result = guarded(self.gateway, work.job, partial(look, self.gateway, work))
        except ClusterUnreachable:
            self.calls.failed()  # what is held stays held until the cluster answers
        except ClusterRejected as error:
            log.warning("look_refused", job_id=work.job["uid"], detail=error.detail)
        else:
            self.calls.answered()
            return result
        return None


def _is_watched(work: Work) -> bool:
    return work.state in WATCHED_STATES


def _is_stopping(work: Work) -> bool:
    return work.state is JobState.STOPPING


def watch(gateway: Gateway, work: Work) -> Move | None:
    """Look at one started gang; gives the step that its job takes."""
    seen = gateway.backend.observe(work.launch, ref_of(work.job, work.attempt))
    # What was seen comes before what the clock says: a gang that just succeeded is not late.
    verdict = ending(seen, gateway.settings.max_pod_restarts) or overdue(
        work.job, work.attempt, gateway.clock.now_us()
    )
    if verdict is not None:
        return Move(work=work, change=_end(verdict, gateway.clock.now_us()))
    if work.attempt["phase"] != AttemptPhase.OPEN:
        return None
    if has_closed_gate(seen) and may_call(gateway):
        # A re-created replica; it gets its old place, alone.
        gateway.backend.open_gates(work.launch, ref_of(work.job, work.attempt))
    if work.job["state"] == JobState.LAUNCHING and is_ready(work.launch, seen):
        return _running(work, gateway.clock.now_us())
    return None


def _end(verdict: Verdict, at_us: int) -> Change:
    stop = Stop(
        outcome=verdict.outcome,
        end_reason=verdict.reason,
        actor=SYSTEM_ACTOR,
        at_us=at_us,
        message=verdict.message,
        exit_code=verdict.exit_code,
    )
    return stop_change(stop)


def _running(work: Work, at_us: int) -> Move:
    change = Change(
        event=JobEvent.READY,
        actor=SYSTEM_ACTOR,
        at_us=at_us,
        kind="running",
        detail=f"all {len(work.launch.pods)} pods are ready",
        values={"started_us": at_us},
    )
    return Move(work=work, attempt={"started_us": at_us}, change=change)


def expire_waiting(gateway: Gateway) -> int:
    """End jobs that waited longer than their queue timeout."""
    at_us = gateway.clock.now_us()
    with gateway.database.read() as connection:
        overdue_jobs = overdue_waiting(connection, at_us, MOST_TIMEOUTS)
    ended = [guarded(gateway, job, partial(_expire, gateway, job)) for job in overdue_jobs]
    return ended.count(True)


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
