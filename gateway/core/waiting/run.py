"""A sorted run of jobs with a list of newcomers: the order of one part of a line.

Inserting into a sorted million costs as much as moving it, so newcomers stay in a short list of
their own until they are worth merging. Jobs that left are skipped when they come up.
"""

from bisect import insort
from collections.abc import Iterator
from heapq import merge
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gateway.core.waiting.table import JobTable

Entry = tuple[int, int, int, int]
"""(key, instant of submission, job, slot): sorts in the order of the run."""
LEAST_NEWCOMERS, MOST_NEWCOMERS = 64, 4096
"""Bounds of the newcomers' list, which may grow to a small part of the run: an entry there takes
thirty times the memory of a slot in the run, and merging costs what the run is long."""
NEWCOMERS_PART: Final = 64


class SortedRun:
    """Slots in order; says which comes first, and walks along without changing anything."""

    def __init__(self, table: JobTable, stage: int) -> None:
        """Start empty; a job that was taken in stands here as long as its stage is this one."""
        self.table = table
        self.stage = stage
        self._order: NDArray[np.int32] = np.zeros(0, dtype=np.int32)
        self._start = 0
        self._newcomers: list[Entry] = []
        self._unsorted: list[NDArray[np.int64]] = []
        """Jobs that came since anybody looked: a whole load is sorted once, not chunk by chunk."""

    def add(self, slots: NDArray[np.int64]) -> None:
        """Take jobs in."""
        self._unsorted.append(slots)

    def first(self) -> Entry | None:
        """Give the job that comes first."""
        if self.is_empty():
            return None
        if self._start == len(self._order):
            return self._newcomers[0]
        settled = self.entry(int(self._order[self._start]))
        return min(settled, self._newcomers[0]) if self._newcomers else settled

    def is_empty(self) -> bool:
        """Whether nobody is here; those that left are forgotten on the way."""
        if self._unsorted:
            self._sort()
        order, stages = self._order, self.table.stage
        # Stages say who is still here, so leaving costs one write and no search.
        while self._start < len(order) and stages[order[self._start]] != self.stage:
            self._start += 1
        while self._newcomers and stages[self._newcomers[0][3]] != self.stage:
            del self._newcomers[0]
        return self._start == len(order) and not self._newcomers

    def walk(self) -> Iterator[Entry]:
        """Give all jobs in order."""
        if self._unsorted:
            self._sort()
        settled = map(self.entry, self._order[self._start :])
        entries: Iterator[Entry] = settled
        if self._newcomers:
            is_all = self._start == len(self._order)
            entries = iter(self._newcomers) if is_all else merge(settled, self._newcomers)
        stages = self.table.stage
        return (entry for entry in entries if stages[entry[3]] == self.stage)

    def entry(self, slot: int) -> Entry:
        """Give what a slot is ordered by."""
        table = self.table
        return (
            int(table.key[slot]),
            int(table.submitted_us[slot]),
            int(table.job_id[slot]),
            int(slot),
        )

    def _sort(self) -> None:
        """Put those who came where they belong."""
        slots, self._unsorted = np.concatenate(self._unsorted), []
        most = min(MOST_NEWCOMERS, max(LEAST_NEWCOMERS, len(self._order) // NEWCOMERS_PART))
        if len(slots) + len(self._newcomers) > most:
            self._merge(slots)
            return
        for slot in slots.tolist():
            insort(self._newcomers, self.entry(slot))

    def _merge(self, slots: NDArray[np.int64]) -> None:
        """Sort everything that is still here together."""
        table = self.table
        new = np.array([entry[3] for entry in self._newcomers], dtype=np.int64)
        every = np.concatenate([self._order[self._start :], slots, new])
        # A job that left and came back to this run must not stand in it twice.
        every = np.unique(every[table.stage[every] == self.stage]).astype(np.int32)
        keys = (table.job_id[every], table.submitted_us[every], table.key[every])
        self._order, self._start, self._newcomers = every[np.lexsort(keys)], 0, []
