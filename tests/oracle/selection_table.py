"""Best device choices of a machine by one table over all pairs of GPU and NIC sets.

The same plain search as in `selection`, with everything that does not depend on what is free worked
out before: needed where every mask is tried. For machines of at most 20 devices in all.
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from gateway.core.devices.fleet import MachineType
from gateway.core.devices.selection import Choice, DeviceWish
from gateway.core.devices.topology import layout_of, pairing
from gateway.core.vocabulary import PairRule
from tests.oracle.selection import link_costs, ordinals, sizes_left

Table = NDArray[np.int64]
LOW = 1 << 20
"""More than there are pairs of sets: ranks stay below it."""


class SelectionTable:
    """All pairs of a GPU set and a NIC set of one machine type, ranked."""

    def __init__(self, machine: MachineType) -> None:
        self.layout = layout_of(machine)
        self.shape = 1 << len(machine.gpus), 1 << len(machine.nics)
        left = {
            (gpus, nics): sizes_left(self.layout, gpus, nics)
            for gpus, nics in np.ndindex(self.shape)
        }
        rank = {sizes: number for number, sizes in enumerate(sorted(set(left.values())))}
        self.left = np.array([rank[each] for each in left.values()], np.int64).reshape(self.shape)
        self.order = self._order()
        self.first: dict[PairRule, Table] = {rule: self._first(rule) for rule in PairRule}

    def _order(self) -> Table:
        sets = [sorted(range(count), key=ordinals) for count in self.shape]
        places = [np.argsort(np.array(each, dtype=np.int64)) for each in sets]
        return places[0][:, None] * self.shape[1] + places[1][None, :]

    def _first(self, rule: PairRule) -> Table:
        """Give rule broken, distance and links as one number."""
        table = np.zeros(self.shape, dtype=np.int64)
        for gpus, nics in np.ndindex(self.shape):
            is_broken, distance = pairing(self.layout, gpus, nics, rule)
            table[gpus, nics] = (is_broken << 20) + (distance << 10) + link_costs(self.layout, gpus)
        return table

    def choice(self, free: tuple[int, int], wish: DeviceWish) -> Choice | None:
        """Give the best choice for one wish without siblings."""
        gpus, nics = map(_within, free, wish[:2])
        found = self._best(free, gpus, nics, wish.rule) if len(gpus) and len(nics) else None
        return None if found and wish.is_required and not found.is_aligned else found

    def _best(self, free: tuple[int, int], gpus: Table, nics: Table, rule: PairRule) -> Choice:
        pairs = np.ix_(gpus, nics)
        left = self.left[np.ix_(free[0] ^ gpus, free[1] ^ nics)]
        # Judged field by field: what meets the rule and is near, then what stays, then order.
        keys = (self.first[rule][pairs] * LOW + left) * LOW + self.order[pairs]
        row, column = np.unravel_index(keys.argmin(), keys.shape)
        gpu, nic = int(gpus[row]), int(nics[column])
        return Choice(gpu, nic, is_aligned=not self.first[rule][gpu, nic] >> 20)


@lru_cache(maxsize=65536)
def _within(mask: int, size: int) -> Table:
    """Give the subsets of a mask that have a size."""
    every = [each for each in range(mask + 1) if not each & ~mask and each.bit_count() == size]
    return np.array(every, dtype=np.int64)
