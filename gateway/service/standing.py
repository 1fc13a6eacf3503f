"""Where a waiting job stands right now, what bars it, and what would let it start.

Asked of the warm state of this process, which is brought up to date first and stays as it is.
"""

from collections.abc import Iterable
from dataclasses import asdict, dataclass

from gateway.core.admission.asking import ASKED_JOB, Scope, forecast
from gateway.core.admission.ranking import Bar
from gateway.core.admission.remedies import remedies
from gateway.core.admission.unblock import Lift, Unblock
from gateway.core.vocabulary import LiftKind
from gateway.core.waiting.table import NewJob
from gateway.db import jobs as job_rows
from gateway.db.engine import Row
from gateway.schemas.views import LiftView
from gateway.service.context import Gateway
from gateway.service.mirroring import refresh
from gateway.service.ordering import ranking

MOST_CANDIDATES = 1000
"""That a pass tries to find out what would become of a held job."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """A job in its line."""

    position: int
    gpus_ahead: int
    bar: Bar | None
    sets: tuple[Unblock, ...]
    """What would let it start in the next cycle, each complete by itself."""


def standing_of(gateway: Gateway, job: Row) -> Standing | None:
    """Give where a pending job stands; None when it does not wait any more."""
    now_us = gateway.clock.now_us()
    highest = _highest(gateway, job["queue"])
    with ranking(gateway, job["queue"], now_us) as order:
        if order.place_of(job["id"]) is None:
            return None
        ranked = order.of(job["id"])
        state = gateway.mirror.mirror.state
        return Standing(
            position=ranked.position,
            gpus_ahead=order.gpus_before(ranked.place),
            bar=ranked.bar,
            sets=possible(remedies(state, job["id"], now_us), highest),
        )


def sets_once_released(gateway: Gateway, job: Row) -> tuple[Unblock, ...]:
    """Give what would let a held job start; its release is part of each set."""
    release = Unblock(
        f"gateway release {job['uid']}", (Lift(kind=LiftKind.RELEASE, target=job["uid"]),)
    )
    highest = _highest(gateway, job["queue"])
    with gateway.mirror.lock:
        refresh(gateway)
        state = gateway.mirror.mirror.state
        request = state.classes.get(job["class_id"])
        if request is None or job["queue"] not in state.lines.lines:
            return (release,)
        scope = Scope(now_us=gateway.clock.now_us(), budget=MOST_CANDIDATES)
        found = forecast(state, _released(job), request, scope)
    if found.admit is not None:
        return (release,)
    return tuple(release.also(each) for each in possible(found.sets, highest))


def _released(job: Row) -> NewJob:
    same = ("queue", "class_id", "priority", "rank", "submitted_us", "eligible_us", "deadline_us")
    return NewJob(
        **{name: job[name] for name in same},
        job_id=ASKED_JOB,
        version=job["version"],
        user=job["user_name"],
        expected_seconds=job["expected_seconds"],
    )


def _highest(gateway: Gateway, queue: str) -> int:
    """Give the highest priority that a queue takes."""
    with gateway.database.read() as connection:
        row = job_rows.get_queue_row(connection, queue)
    return 0 if row is None else int(row["priority_max"])


def possible(sets: Iterable[Unblock], highest: int) -> tuple[Unblock, ...]:
    """Leave out sets with a priority that the queue does not take."""
    return tuple(
        each
        for each in sets
        if all(lift.kind is not LiftKind.PRIORITY or lift.amount <= highest for lift in each.lifts)
    )


def lift_views(sets: Iterable[Unblock]) -> tuple[tuple[LiftView, ...], ...]:
    """Give the numbers of sets as users see them."""
    return tuple(tuple(LiftView(**asdict(lift)) for lift in each.lifts) for each in sets)
