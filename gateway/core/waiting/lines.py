"""The lines of all queues: jobs grouped by what they ask, each group sorted by the queue's policy.

A group holds jobs of one queue, request class and stage of the order (and user, where the user
matters). All jobs of a group fit or fail together, so a decision looks at the first of each only.
"""

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gateway.core.policies import named
from gateway.core.policies.ordering import ORDERING, Ordering, Standing
from gateway.core.queues.definitions import Queue
from gateway.core.vocabulary import UNLIMITED
from gateway.core.waiting.alarms import Alarms
from gateway.core.waiting.run import Entry, SortedRun
from gateway.core.waiting.table import GONE, PARKED, JobTable, NewJob

# Codes of the table start at 0, so this is nobody's.
ANYBODY = -1
"""User of a group in which users do not matter."""

LEAST_GONE = 4096
"""Fewer left slots are not worth laying everything out again."""

Position = tuple[int, int, int, int, int]
"""What heads compare by: user's usage, rank of the stage, key now, instant of submission, job."""


class GroupKey(NamedTuple):
    """What jobs of a group share; `user` is a code of the table, or ANYBODY."""

    queue: str
    class_id: int
    user: int
    stage: int


@dataclass(slots=True, eq=False)
class Group:
    """Jobs that fit or fail together, in order."""

    key: GroupKey
    run: SortedRun


@dataclass(slots=True, eq=False)
class Line:
    """One queue's jobs."""

    queue: Queue
    ordering: Ordering
    splits_users: bool
    groups: dict[GroupKey, Group] = field(default_factory=dict)
    usage: dict[int, int] = field(default_factory=dict)
    """Decayed usage by user code, at one landmark for all; nothing where nobody asks for it."""
    oldest_us: dict[int, int] = field(default_factory=dict)
    """By class, an instant before which none of its jobs was submitted."""

    def position(self, group: Group, entry: Entry, now_us: int) -> Position:
        """Give what a job of a group is ordered by at an instant."""
        stage = self.ordering.stages[group.key.stage]
        # Keys of an ageing stage were made as if now was the epoch; all of them fall alike since.
        key = entry[0] - self.queue.ageing.per_hour * now_us if stage.ages else entry[0]
        # Who used nothing has no row, and comes before everybody who has one.
        usage = self.usage.get(group.key.user, 0) if self.ordering.by_user else 0
        return usage, stage.rank, key, entry[1], entry[2]


class Lines:
    """Everybody who waits. Changed only by `add`, `remove`, `define` and time."""

    def __init__(self, gpus: Mapping[int, int]) -> None:
        """Start empty; `gpus` of a whole gang by class, read when a job of it comes."""
        self.table = JobTable()
        self.lines: dict[str, Line] = {}
        self._gpus = gpus
        self._later = Alarms()
        self._moves = Alarms()
        self._now_us = 0
        self._usage: dict[str, dict[int, int]] = {}
        self.touched: set[GroupKey] = set()
        """Groups with newcomers since this was last emptied; a head may be another one now."""

    def __len__(self) -> int:
        """Number of waiting jobs."""
        return len(self.table)

    def define(self, queues: Sequence[Queue]) -> None:
        """Take new definitions; only lines whose order changed are laid out again."""
        # A million jobs need seconds to be laid out, so a pause or a new quota must not cause it.
        before, self.lines = self.lines, {}
        for queue in queues:
            line = _line_of(queue)
            known = before.get(queue.name)
            if known is not None and _order_of(known) == _order_of(line):
                known.queue = queue
                line = known
            line.usage = self._usage.get(queue.name, {})
            self.lines[queue.name] = line
        fresh = [name for name, line in self.lines.items() if line is not before.get(name)]
        self._lay_out(fresh)

    def touch(self, class_ids: Container[int]) -> None:
        """Treat all groups of these classes as if somebody new had come."""
        for line in self.lines.values():
            self.touched.update(key for key in line.groups if key.class_id in class_ids)

    def rate_users(self, usage: Mapping[str, Mapping[str, int]]) -> None:
        """Take decayed usage by queue and user, all at one landmark."""
        self._usage = {
            queue: {self.table.code("user", user): amount for user, amount in users.items()}
            for queue, users in usage.items()
        }
        for name, line in self.lines.items():
            line.usage = self._usage.get(name, {})

    def user_usage(self) -> Iterator[tuple[tuple[str, str], int]]:
        """Give what `rate_users` took, by (queue, user)."""
        for queue, users in self._usage.items():
            for code, amount in users.items():
                yield (queue, self.table.words["user"][code]), amount

    def strangers(self, class_ids: Container[int]) -> list[int]:
        """Give the jobs of queues that are not defined, or of classes other than these."""
        table = self.table
        here = np.flatnonzero(table.stage[: table.count] != GONE)
        codes = [code for code, name in enumerate(table.words["queue"]) if name in self.lines]
        classes = [each for each in np.unique(table.class_id[here]).tolist() if each in class_ids]
        known = np.isin(table.queue[here], codes) & np.isin(table.class_id[here], classes)
        return sorted(table.job_id[here[~known]].tolist())

    def add(self, jobs: Sequence[NewJob]) -> None:
        """Let jobs wait, each id once; one that waits already is replaced."""
        for slot in self.table.find_all([job[0] for job in jobs]):
            self.table.remove(slot)
        self._place(self.table.add(jobs))

    def remove(self, job_id: int) -> None:
        """Let a job leave, if it waits."""
        slot = self.table.find(job_id)
        if slot is not None:
            self.table.remove(slot)

    def compact(self) -> None:
        """Give the slots of those that left back, once they are the most of all slots."""
        if self.table.gone * 2 <= self.table.count or self.table.gone < LEAST_GONE:
            return
        # Slots are renumbered here, so whoever remembers slots must have let go of them.
        self.table = self.table.without_gone()
        self._later, self._moves = Alarms(), Alarms()
        for line in self.lines.values():
            line.groups.clear()
            line.oldest_us.clear()
        self._lay_out(list(self.lines))

    def advance(self, now_us: int) -> None:
        """Bring those whose instant has come to where they stand now. Time never goes back."""
        # A clock that steps back would park again what was let go.
        self._now_us = max(self._now_us, now_us)
        due = [*self._later.due(self._now_us), *self._moves.due(self._now_us)]
        # An alarm is never taken back: its job may be gone, or have been placed anew meanwhile.
        here = [slot for slot in dict.fromkeys(due) if self.table.stage[slot] != GONE]
        if here:
            self._place(np.array(here, dtype=np.int64))

    def next_change_us(self) -> int | None:
        """Give the earliest instant at which a job becomes eligible or changes its stage."""
        instants = [self._later.next_at(), self._moves.next_at()]
        return min((at for at in instants if at is not None), default=None)

    def groups_of(self, queue: str) -> Iterator[Group]:
        """Give the groups of a queue that have a job."""
        for group in self.lines[queue].groups.values():
            if not group.run.is_empty():
                yield group

    def user_of(self, key: GroupKey) -> str:
        """Give the name of a group's user; empty for anybody."""
        return "" if key.user == ANYBODY else self.table.words["user"][key.user]

    def _place(self, slots: NDArray[np.int64]) -> None:
        """Put jobs into the group and stage where they belong now."""
        by_queue = _split(slots, self.table.queue[slots])
        for code, mine in by_queue.items():
            line = self.lines.get(self.table.words["queue"][code])
            if line is not None:
                self._place_in(line, mine)

    def _place_in(self, line: Line, slots: NDArray[np.int64]) -> None:
        table, listed = self.table, slots.tolist()
        eligible = table.sparse("eligible_us", listed)
        is_early = eligible > self._now_us
        # Most jobs have no such instant, and their column is not even kept.
        if is_early.any():
            table.stage[slots[is_early]] = PARKED
            self._later.set(eligible[is_early], slots[is_early])
            slots, eligible = slots[~is_early], eligible[~is_early]
            listed = slots.tolist()
        standing = Standing(
            priority=table.priority[slots].astype(np.int64),
            since_us=np.maximum(table.submitted_us[slots], eligible),
            deadline_us=table.sparse("deadline_us", listed),
            expected_seconds=table.sparse("expected_seconds", listed),
            gpus=self._gpus_of(table.class_id[slots]),
        )
        places = line.ordering.place(standing, line.queue.ageing, self._now_us)
        # An alarm of former definitions may find a job where it belongs: not to be filed twice.
        is_new = table.stage[slots] != places.stage
        slots, until_us = slots[is_new], places.until_us[is_new]
        table.stage[slots], table.key[slots] = places.stage[is_new], places.key[is_new]
        moves = until_us < UNLIMITED
        if moves.any():
            self._moves.set(until_us[moves], slots[moves])
        self._file(line, slots)

    def _gpus_of(self, class_ids: NDArray[np.int32]) -> NDArray[np.int64]:
        # Classes are few and jobs are many: one look at the dict for each class.
        known, where = np.unique(class_ids, return_inverse=True)
        amounts = [self._gpus.get(class_id, 0) for class_id in known.tolist()]
        return np.array(amounts, dtype=np.int64)[where] if amounts else np.zeros(0, dtype=np.int64)

    def _file(self, line: Line, slots: NDArray[np.int64]) -> None:
        """Hand placed jobs to their groups."""
        table = self.table
        user = table.user[slots] if line.splits_users else np.full(len(slots), ANYBODY)
        # One number for class, user and stage: sorting numbers is several times faster than rows.
        users, stages = len(table.words["user"]) + 1, len(line.ordering.stages)
        kinds = (table.class_id[slots] * np.int64(users) + user + 1) * stages + table.stage[
            slots
        ].astype(np.int64)
        for kind, mine in _split(slots, kinds).items():
            rest, stage = divmod(kind, stages)
            class_id, user_code = divmod(rest, users)
            key = GroupKey(line.queue.name, class_id, user_code - 1, stage)
            group = line.groups.get(key)
            if group is None:
                group = line.groups[key] = Group(key, SortedRun(table, stage))
            group.run.add(mine)
            oldest_us = int(table.submitted_us[mine].min())
            line.oldest_us[class_id] = min(line.oldest_us.get(class_id, oldest_us), oldest_us)
            self.touched.add(key)

    def _lay_out(self, queues: Sequence[str]) -> None:
        """Place every job of these queues again."""
        codes = [self.table.names["queue"].get(name, -1) for name in queues]
        count = self.table.count
        is_mine = np.isin(self.table.queue[:count], codes) & (self.table.stage[:count] != GONE)
        slots = np.flatnonzero(is_mine)
        self.table.stage[slots] = PARKED
        self._place(slots)


def _line_of(queue: Queue) -> Line:
    ordering = named("ordering", ORDERING, queue.order)
    caps = (queue.caps.user_running_jobs, queue.caps.user_gpus)
    return Line(queue, ordering, ordering.by_user or min(caps) < UNLIMITED)


def _order_of(line: Line) -> tuple[object, ...]:
    return line.queue.order, line.queue.ageing, line.splits_users


def _split(
    slots: NDArray[np.int64], kinds: NDArray[np.int32] | NDArray[np.int64]
) -> dict[int, NDArray[np.int64]]:
    """Give slots by kind."""
    if len(slots) < 2:  # noqa: PLR2004 - nothing to split, and most changes are of one job
        return {int(kind): slots for kind in kinds[:1]}
    # Stable, so that slots of a kind stay in the order in which they came.
    order = np.argsort(kinds, kind="stable")
    ordered = kinds[order]
    bounds = np.flatnonzero(np.diff(ordered)) + 1
    parts = np.split(slots[order], bounds)
    heads = ordered[np.concatenate(([0], bounds))].tolist()
    return dict(zip(heads, parts, strict=True))
