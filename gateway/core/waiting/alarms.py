"""Slots with an instant each: which are due, and when the next one will be."""

from collections.abc import Iterator
from heapq import heappop, heappush
from typing import Final

import numpy as np
from numpy.typing import NDArray

_MOST_NEWCOMERS: Final = 512


class Alarms:
    """Instants in order; a slot may be set more than once, and must then be judged again."""

    def __init__(self) -> None:
        """Start without any."""
        self._at: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        self._slot: NDArray[np.int32] = np.zeros(0, dtype=np.int32)
        self._start = 0
        self._newcomers: list[tuple[int, int]] = []

    def set(self, at_us: NDArray[np.int64], slots: NDArray[np.int64]) -> None:
        """Remember an instant for each slot."""
        if len(slots) + len(self._newcomers) > _MOST_NEWCOMERS:
            self._merge(at_us, slots)
            return
        for pair in zip(at_us.tolist(), slots.tolist(), strict=True):
            heappush(self._newcomers, pair)

    def next_at(self) -> int | None:
        """Give the earliest instant."""
        first = self._first()
        return first[0] if first else None

    def due(self, now_us: int) -> Iterator[int]:
        """Give, and forget, the slots whose instant has come."""
        while (first := self._first()) and first[0] <= now_us:
            # Either part may hold the earliest; a tie is the same pair set twice, and rings twice.
            if self._newcomers and self._newcomers[0] == first:
                heappop(self._newcomers)
            else:
                self._start += 1
            yield first[1]

    def _first(self) -> tuple[int, int] | None:
        if self._start == len(self._at):
            return self._newcomers[0] if self._newcomers else None
        settled = int(self._at[self._start]), int(self._slot[self._start])
        return min(settled, self._newcomers[0]) if self._newcomers else settled

    def _merge(self, at_us: NDArray[np.int64], slots: NDArray[np.int64]) -> None:
        new = np.array(self._newcomers, dtype=np.int64).reshape(-1, 2)
        every_at = np.concatenate([self._at[self._start :], at_us, new[:, 0]])
        every_slot = np.concatenate([self._slot[self._start :], slots, new[:, 1]])
        # By slot where instants are equal, so that the order of arrival does not matter.
        order = np.lexsort((every_slot, every_at))
        self._at, self._slot = every_at[order], every_slot[order].astype(np.int32)
        self._start, self._newcomers = 0, []
