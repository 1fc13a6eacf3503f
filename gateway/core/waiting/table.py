"""Waiting jobs by slot: plain columns that grow at their end, because a million must stay cheap.

A changed job gets a new slot and leaves its old one, so that whoever remembers a slot can tell that
it is stale. Slots that nobody needs are given back when the lines are laid out anew.
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

GONE: Final = -1
PARKED: Final = -2
"""Waits for an instant before which it must not be considered."""
_SMALLEST: Final = 64
_FEW: Final = 16
"""Fewer jobs are looked up one by one."""


class NewJob(NamedTuple):
    """A waiting job as it comes from the database; instants in microseconds, UTC."""

    job_id: int
    version: int
    queue: str
    class_id: int
    user: str
    priority: int
    rank: int
    submitted_us: int
    eligible_us: int = 0
    deadline_us: int = 0
    expected_seconds: int = 0


# Sizes for a million jobs: 49 bytes each here.
_COLUMNS: Final = {
    "job_id": np.int64,
    "version": np.int32,
    "queue": np.int32,
    "class_id": np.int32,
    "user": np.int32,
    "priority": np.int32,
    "rank": np.int32,
    "submitted_us": np.int64,
    "key": np.int64,
    "stage": np.int8,
}
_RARE: Final = ("eligible_us", "deadline_us", "expected_seconds")
"""Few jobs have these, so a column of a million zeros would be a waste."""


class JobTable:
    """Columns of jobs by slot. `stage` is where a job stands, or GONE or PARKED."""

    job_id: NDArray[np.int64]
    version: NDArray[np.int32]
    queue: NDArray[np.int32]
    class_id: NDArray[np.int32]
    user: NDArray[np.int32]
    priority: NDArray[np.int32]
    rank: NDArray[np.int32]
    submitted_us: NDArray[np.int64]
    key: NDArray[np.int64]
    stage: NDArray[np.int8]

    def __init__(self) -> None:
        """Start empty."""
        for name, kind in _COLUMNS.items():
            setattr(self, name, np.zeros(_SMALLEST, dtype=kind))
        self.count = 0
        self.gone = 0
        self.names: dict[str, dict[str, int]] = {"queue": {}, "user": {}}
        self.words: dict[str, list[str]] = {"queue": [], "user": []}
        self.eligible_us: dict[int, int] = {}
        self.deadline_us: dict[int, int] = {}
        self.expected_seconds: dict[int, int] = {}
        self._recent: dict[int, int] = {}
        self._sorted = 0

    def __len__(self) -> int:
        """Number of jobs that wait."""
        return self.count - self.gone

    def code(self, kind: str, name: str) -> int:
        """Give the number of a queue's or user's name; a new name gets the next one."""
        known = self.names[kind]
        if name not in known:
            known[name] = len(known)
            self.words[kind].append(name)
        return known[name]

    def find(self, job_id: int) -> int | None:
        """Give the slot of a waiting job; None when it does not wait."""
        # A job that was changed has its newest slot here; its old one may still be found by
        # bisection.
        slot = self._recent.get(job_id)
        if slot is None:
            ordered = self.job_id[: self._sorted]
            slot = int(ordered.searchsorted(job_id))
            if slot == self._sorted or ordered[slot] != job_id:
                return None
        return None if self.stage[slot] == GONE else slot

    def find_all(self, job_ids: Sequence[int]) -> list[int]:
        """Give the slots of those of these jobs that wait."""
        if not self.count or not job_ids:
            return []
        if len(self._recent) or len(job_ids) < _FEW:
            found = (self.find(job_id) for job_id in job_ids)
            return [slot for slot in found if slot is not None]
        ordered, ids = self.job_id[: self._sorted], np.array(job_ids, dtype=np.int64)
        # Past the last id the search points behind the column.
        slots = np.minimum(np.searchsorted(ordered, ids), self._sorted - 1)
        here = (ordered[slots] == ids) & (self.stage[slots] != GONE)
        found_slots: list[int] = slots[here].tolist()
        return found_slots

    def add(self, jobs: Sequence[NewJob]) -> NDArray[np.int64]:
        """Append jobs that do not wait yet; gives their slots, all PARKED."""
        first, self.count = self.count, self.count + len(jobs)
        self._grow()
        slots = slice(first, self.count)
        for name, values in zip(NewJob._fields, zip(*jobs, strict=True), strict=False):
            if name in _RARE:
                # The slots of the few that have it; most columns hold nothing but zeros.
                rare = ((first + at, value) for at, value in enumerate(values) if value)
                getattr(self, name).update(rare if any(values) else ())
            else:
                getattr(self, name)[slots] = self._coded(name, values)
        self.stage[slots] = PARKED
        self._index(first)
        return np.arange(first, self.count, dtype=np.int64)

    def remove(self, slot: int) -> None:
        """Let a job leave; its slot stays, and says so."""
        self.stage[slot] = GONE
        self.gone += 1
        for name in _RARE:
            getattr(self, name).pop(slot, None)

    def sparse(self, name: str, slots: Sequence[int]) -> NDArray[np.int64]:
        """Give a rare field of these slots as a column."""
        values: dict[int, int] = getattr(self, name)
        if not values:
            return np.zeros(len(slots), dtype=np.int64)
        return np.array([values.get(slot, 0) for slot in slots], dtype=np.int64)

    def without_gone(self) -> "JobTable":
        """Give the same jobs by id in slots without gaps; all PARKED, for nobody placed them."""
        here = np.flatnonzero(self.stage[: self.count] != GONE)
        # In the order of ids everybody is found by bisection again, and nobody needs an entry.
        here = here[np.argsort(self.job_id[here], kind="stable")]
        table = JobTable()
        for name in _COLUMNS:
            setattr(table, name, getattr(self, name)[here])
        table.count = table._sorted = len(here)
        table.stage[:] = PARKED
        # Codes must not change: groups of lines are named by them.
        table.names, table.words = self.names, self.words
        slot_of = {old: new for new, old in enumerate(here.tolist())} if self._has_rare() else {}
        for name in _RARE:
            old: dict[int, int] = getattr(self, name)
            setattr(table, name, {slot_of[slot]: value for slot, value in old.items()})
        return table

    def _has_rare(self) -> bool:
        return any(getattr(self, name) for name in _RARE)

    def _coded(self, name: str, values: Sequence[Any]) -> Sequence[int]:
        """Give values as numbers; names that are new get numbers first."""
        if name not in self.names:
            return values
        known = self.names[name]
        # Sorted, so that equal rows get equal codes under any hash seed.
        for word in sorted(set(values) - known.keys()):
            self.code(name, word)
        return [known[word] for word in values]

    def _index(self, first: int) -> None:
        """Remember how to find the jobs from this slot on."""
        ids = self.job_id[max(0, first - 1) : self.count]
        # Ids mostly grow, so most jobs are found by bisection and need no entry of their own.
        if self._sorted == first and (ids[1:] > ids[:-1]).all():
            self._sorted = self.count
            return
        slots = range(first, self.count)
        self._recent.update(zip(self.job_id[first : self.count].tolist(), slots, strict=True))

    def _grow(self) -> None:
        if self.count <= len(self.job_id):
            return
        size = max(self.count, len(self.job_id) + len(self.job_id) // 16)
        for name in _COLUMNS:
            column = getattr(self, name)
            larger = np.zeros(size, dtype=column.dtype)
            larger[: len(column)] = column
            setattr(self, name, larger)
