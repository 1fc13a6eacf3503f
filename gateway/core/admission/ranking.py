"""Who comes when in one queue: everybody who waits there in order, with every term of the order.

What jobs are compared by was put into the lines by the queue's order policy; here it is only read,
so what people are shown is what decides. Nothing here decides or changes who waits.
"""

from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b

import numpy as np

from gateway.core.admission.bars import cap_words
from gateway.core.admission.state import State
from gateway.core.admission.terms import Standing, Terms, terms_of
from gateway.core.admission.verdicts import queue_bar
from gateway.core.jobs.columns import Bool, Int64
from gateway.core.policies.decay import CAPACITY_BITS
from gateway.core.policies.ordering import HOUR_US, SECOND_US
from gateway.core.resources import GPU
from gateway.core.vocabulary import OrderPolicy, Reason
from gateway.core.waiting.lines import Line
from gateway.core.waiting.table import GONE, PARKED

BY_NUMBER = frozenset({OrderPolicy.PRIORITY.value, OrderPolicy.FAIR_USERS.value})
"""Policies in which a job's priority decides between jobs of one user."""

Place = tuple[int, int, int, int, int, int]
"""What decides, lower first: not before its time, usage, rank of the stage, key, submitted, job."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """What keeps a job out of the pass, whatever fits."""

    reason: Reason
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """One job with its place."""

    position: int
    """From 1."""
    place: Place
    job_id: int
    class_id: int
    user: str
    priority: int
    rank: int
    """Value of its priority class."""
    submitted_us: int
    eligible_us: int
    gpus: int
    terms: Terms
    bar: Bar | None


class Ranking:
    """One queue at one instant, as columns; those who may not start yet come after all others."""

    def __init__(self, state: State, queue: str, now_us: int) -> None:
        """Read the line of a queue that is defined; it is brought to the instant before."""
        state.lines.advance(now_us)
        self.now_us = now_us
        self._state = state
        self._line = state.lines.lines[queue]
        table = state.lines.table
        code = table.names["queue"].get(queue, -1)
        is_mine = (table.queue[: table.count] == code) & (table.stage[: table.count] != GONE)
        self._slots = np.flatnonzero(is_mine)
        self._columns = _columns_of(state, self._line, self._slots, now_us)

    def __len__(self) -> int:
        """How many jobs wait."""
        return len(self._slots)

    @property
    def policy(self) -> str:
        """Name of the queue's order policy."""
        return str(self._line.queue.order)

    @cached_property
    def serial(self) -> int:
        """A number for this order: as long as nobody comes, leaves or overtakes, it is the same."""
        # Short enough for a double, since JavaScript has no other numbers.
        ordered = np.ascontiguousarray(self._columns[-1][self._order])
        return int.from_bytes(blake2b(ordered.tobytes(), digest_size=6).digest(), "big")

    def place_of(self, job_id: int) -> Place | None:
        """Give what a job is compared by; None when it does not wait here."""
        row = self._row(job_id)
        return None if row is None else self._place(row)

    def position(self, place: Place) -> int:
        """Give the position of a place, from 1, whether or not somebody has it."""
        return int(np.count_nonzero(self._before(place))) + 1

    def after(self, place: Place | None, limit: int) -> tuple[list[Ranked], Place | None]:
        """Give the next jobs behind a place, and the last one's place if there are more."""
        # A place ends with the job's id, and with one more it is the first behind. So a page goes
        # on rightly also where the last job of the page before has left.
        start = 0 if place is None else self.position((*place[:-1], place[-1] + 1)) - 1
        rows = self._order[start : start + limit].tolist()
        ranked = [self._ranked(start + index, row) for index, row in enumerate(rows, start=1)]
        return ranked, self._place(rows[-1]) if rows and start + limit < len(self) else None

    def of(self, job_id: int) -> Ranked:
        """Give one job with its place; raises LookupError when it does not wait here."""
        row = self._row(job_id)
        if row is None:
            raise LookupError(f"job {job_id} does not wait in queue {self._line.queue.name}")
        return self._ranked(self.position(self._place(row)), row)

    def priority_to_lead(self, job_id: int) -> int | None:
        """Give the least priority with which a job would come before all others of its queue.

        None where the number does not decide: by the queue's policy, by its user's use, or before
        its time. What it has already if it comes first.
        """
        row, others = self._row(job_id), self._order[:2].tolist()
        if row is None or self._line.queue.order not in BY_NUMBER:
            return None
        first = next((self._place(other) for other in others if other != row), None)
        priority = int(self._state.lines.table.priority[self._slots[row]])
        own = self._place(row)
        if first is None or own < first:
            return priority
        is_beaten_otherwise = own[:3] != first[:3] or own[0]
        return None if is_beaten_otherwise else priority + _points_to_pass(own[3:], first[3:])

    def gpus_before(self, place: Place) -> int:
        """Give the GPUs that those before a place ask for in all."""
        ahead = self._slots[self._before(place)]
        kinds, counts = np.unique(self._state.lines.table.class_id[ahead], return_counts=True)
        asked = zip(kinds.tolist(), counts.tolist(), strict=True)
        return sum(self._gpus(class_id) * count for class_id, count in asked)

    @cached_property
    def _order(self) -> Int64:
        # The last column is the first to sort by; one that is the same for all sorts nothing.
        differing = [column for column in self._columns if len(column) and np.ptp(column)]
        if not differing:
            return np.arange(len(self), dtype=np.int64)
        return np.lexsort(tuple(reversed(differing)))

    def _row(self, job_id: int) -> int | None:
        found = np.flatnonzero(self._columns[-1] == job_id)
        return int(found[0]) if len(found) else None

    def _place(self, row: int) -> Place:
        early, usage, stage, key, submitted, job = (int(column[row]) for column in self._columns)
        return early, usage, stage, key, submitted, job

    def _before(self, place: Place) -> Bool:
        """Say of everybody whether they come before a place."""
        is_before = np.zeros(len(self), dtype=np.bool_)
        is_level = np.ones(len(self), dtype=np.bool_)
        for column, value in zip(self._columns, place, strict=True):
            is_before |= is_level & (column < value)
            is_level &= column == value
        return is_before

    def _ranked(self, position: int, row: int) -> Ranked:
        table, slot = self._state.lines.table, int(self._slots[row])
        class_id = int(table.class_id[slot])
        return Ranked(
            position=position,
            place=self._place(row),
            job_id=int(table.job_id[slot]),
            class_id=class_id,
            user=self._user(slot),
            priority=int(table.priority[slot]),
            rank=int(table.rank[slot]),
            submitted_us=int(table.submitted_us[slot]),
            eligible_us=table.eligible_us.get(slot, 0),
            gpus=self._gpus(class_id),
            terms=self._terms(slot, self._place(row)),
            bar=self._bar(slot, class_id),
        )

    def _gpus(self, class_id: int) -> int:
        request = self._state.classes.get(class_id)
        return dict(request.total).get(GPU, 0) if request else 0

    def _user(self, slot: int) -> str:
        table = self._state.lines.table
        return table.words["user"][int(table.user[slot])]

    def _terms(self, slot: int, place: Place) -> Terms:
        table = self._state.lines.table
        since_us = max(int(table.submitted_us[slot]), table.eligible_us.get(slot, 0))
        known = Terms(waited_seconds=max(0, self.now_us - since_us) / SECOND_US)
        is_early, usage, _, key, _, _ = place
        if is_early:
            return known
        if self._line.ordering.by_user:
            known = Terms(waited_seconds=known.waited_seconds, user_usage=usage / 2**CAPACITY_BITS)
        standing = Standing(
            priority=int(table.priority[slot]),
            stage=int(table.stage[slot]),
            key=key,
            now_us=self.now_us,
        )
        return terms_of(self._line.queue.order, standing, known)

    def _bar(self, slot: int, class_id: int) -> Bar | None:
        state = self._state
        if state.lines.table.stage[slot] == PARKED:
            return Bar(reason=Reason.NOT_BEFORE, detail="its time has not come")
        queue = state.scene.queues.get(self._line.queue.name)
        # Of a queue or class that was not read yet nothing can be said.
        if queue is None or class_id not in state.classes:
            return None
        barred = queue_bar(state, queue, self.now_us)
        if barred is not None:
            return Bar(reason=barred.reason, detail=barred.detail)
        gpus, user = state.ask((queue.name, class_id)).gpus, self._user(slot)
        cap = state.holdings.cap_in_the_way(queue, user, gpus)
        if not cap:
            return None
        words = cap_words(cap, queue, user, (state.holdings.gpus.get((queue.name, user), 0), gpus))
        return Bar(reason=Reason.OVER_CAP, detail=words)


def _columns_of(state: State, line: Line, slots: Int64, now_us: int) -> tuple[Int64, ...]:
    """Give what these jobs are compared by, column by column, as `Place` names them."""
    table, stages = state.lines.table, line.ordering.stages
    stage = table.stage[slots].astype(np.int64)
    is_early = stage == PARKED
    index = np.where(is_early, 0, stage)
    ages = np.array([each.ages for each in stages], dtype=np.bool_)[index]
    key = table.key[slots] - np.where(ages, line.queue.ageing.per_hour * now_us, 0)
    usage = np.zeros(len(slots), dtype=np.int64)
    if line.ordering.by_user and len(slots):
        codes, where = np.unique(table.user[slots], return_inverse=True)
        usage = np.array([line.usage.get(code, 0) for code in codes.tolist()])[where]
    rank = np.array([each.rank for each in stages], dtype=np.int64)[index]
    eligible = table.sparse("eligible_us", slots.tolist())
    return (
        is_early.astype(np.int64),
        np.where(is_early, 0, usage),
        np.where(is_early, 0, rank),
        np.where(is_early, eligible, key),
        table.submitted_us[slots],
        table.job_id[slots],
    )


def _points_to_pass(own: tuple[int, int, int], first: tuple[int, int, int]) -> int:
    """Give by how many points a job's number must grow, of (key, submitted, job)."""
    # Each point moves the key by an hour's worth; a tie goes by age, then by job.
    points = -(-(own[0] - first[0]) // HOUR_US)
    return points + (own[0] - points * HOUR_US == first[0] and own[1:] > first[1:])
