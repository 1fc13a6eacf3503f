"""Free GPU room that typical requests cannot use, and how much more of it a placing leaves.

After "Beware of Fragmentation" (USENIX ATC 2023). Works on columns of free amounts, so it knows
neither gangs nor fleets, and counts a GPU in thousandths: whole GPUs and shares of one alike. All
in whole numbers, so that every machine comes to the same order. Chooses nothing.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from gateway.core.devices.fleet import Bool, Int64

WHOLE_GPU = 1000
"""Units of one GPU."""
QUANTUM = 40
"""Losses are told apart by this many units; finer, and chance would outvote the best fit."""


class TypicalPod(NamedTuple):
    """Pods alike among those that are asked for these days; without GPUs it says nothing here."""

    weight: int
    """How many of them there are."""
    gpus: int
    units: int
    """Wanted of each of its GPUs."""
    need: tuple[int, ...]
    """Other amounts, in the columns of the rooms that are judged."""
    kinds: frozenset[int] | None = None
    """Kinds of node that it may use; None for all."""


class Rooms(NamedTuple):
    """What nodes have free, one a row."""

    kinds: Int64
    """Nodes of one kind are open to the same typical pods."""
    units: Int64
    """Of each GPU, a column each; nothing where there is none."""
    free: Int64
    """Other amounts."""


class Mix:
    """Typical pods as columns."""

    def __init__(self, pods: Iterable[TypicalPod], kinds: int = 1) -> None:
        """Keep those that ask for GPUs; `kinds` of node are numbered from 0."""
        self.pods = tuple(pod for pod in pods if pod.gpus and pod.weight)
        """In the order given."""
        columns = np.array([pod[:3] for pod in self.pods], dtype=np.int64).reshape(-1, 3)
        self._weights, self._gpus, shares = columns.T
        # Few shares are asked for by many pods, so rooms are counted once for each share.
        self._shares, share_of = np.unique(shares, return_inverse=True)
        self._share_of = share_of.astype(np.int64)
        self._needs: Int64 = np.array([pod.need for pod in self.pods], dtype=np.int64)
        allowed = [_open_to(pod, kinds) for pod in self.pods]
        self._allowed: Bool = np.array(allowed, dtype=np.bool_).reshape(len(allowed), kinds).T
        self._step = QUANTUM * int(self._weights.sum())

    def __bool__(self) -> bool:
        """Whether anybody typical asks for GPUs."""
        return bool(self.pods)

    def stranded(self, rooms: Rooms) -> Int64:
        """Give the free units of each room that typical pods cannot use, summed over all of them.

        A pod that does not fit can use nothing; one that fits, every GPU with as much as it wants.
        """
        enough = rooms.units[:, :, None] >= self._shares
        usable = np.where(enough, rooms.units[:, :, None], 0).sum(axis=1)[:, self._share_of]
        fits = enough.sum(axis=1)[:, self._share_of] >= self._gpus
        for column in range(rooms.free.shape[1]):
            fits &= rooms.free[:, column, None] >= self._needs[:, column]
        fits &= self._allowed[rooms.kinds]
        free = rooms.units.sum(axis=1) * self._weights.sum()
        stranded: Int64 = free - np.where(fits, usable, 0) @ self._weights
        return stranded

    def losses(self, before: Int64, after: Int64) -> Int64:
        """Give by how many steps more is stranded after than before; below nothing is a gain."""
        # Gains are rounded down and losses up: what does no harm at all stands out.
        steps: Int64 = -((before - after) // self._step)
        return steps


def _open_to(pod: TypicalPod, kinds: int) -> Bool:
    numbers = np.arange(kinds)
    return np.isin(numbers, numbers if pod.kinds is None else list(pod.kinds))
