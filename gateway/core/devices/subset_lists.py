"""GPU subsets of a machine type by size, best linked first: worked out once, then only filtered.

Machines with more GPUs than lists are kept for get their subsets from counts of like GPUs.
"""

from collections.abc import Iterator
from functools import cached_property, lru_cache
from itertools import accumulate, combinations, product
from typing import NamedTuple

from gateway.core.devices.fleet import MachineType
from gateway.core.devices.keys import Scale, gpu_key, scale_of
from gateway.core.devices.nests import Nest, nests_of
from gateway.core.devices.topology import Layout, layout_of

MOST_LISTED = 12
"""GPUs up to which all subsets are listed: 4,095 of them; real machines have at most 8 or 10."""
Counts = tuple[tuple[int, ...], ...]


class Subset(NamedTuple):
    """GPUs that could be chosen."""

    key: int
    """What they add to a choice's key; lists are sorted by it."""
    mask: int
    links: int
    counts: Counts
    """How many of them are in each leaf, by nest."""


class Model:
    """What is worked out once for a machine type; compared by identity."""

    def __init__(self, machine: MachineType) -> None:
        """Take a machine type's topology."""
        self.layout: Layout = layout_of(machine)
        self.gpus = sum(1 << slot.ordinal for slot in machine.gpus)
        nics = sum(1 << slot.ordinal for slot in machine.nics)
        self.nests: tuple[Nest, ...] = nests_of(self.layout, self.gpus, nics)
        self.scale: Scale = scale_of(self.layout)
        self._links = {1 << one | 1 << two: cost for one, two, cost in self.layout.links}

    @cached_property
    def lists(self) -> tuple[tuple[Subset, ...], ...]:
        """All subsets, by size."""
        bits = bits_of(self.gpus)
        return tuple(
            tuple(sorted(map(self.subset, map(sum, combinations(bits, size)))))
            for size in range(len(bits) + 1)
        )

    def within(self, free: int, size: int) -> list[Subset]:
        """Give the subsets of free GPUs that are worth a look, best linked first."""
        if self.gpus.bit_count() > MOST_LISTED:
            return sorted(map(self.subset, self._of_alike(free, size)))
        busy = ~free
        return [subset for subset in self.lists[size] if not subset.mask & busy]

    def subset(self, mask: int) -> Subset:
        """Give what is known of a subset."""
        links = sum(map(self._link_cost, combinations(bits_of(mask), 2)))
        counts = tuple(nest.counts(mask) for nest in self.nests)
        return Subset(gpu_key(self.scale, mask, links), mask, links, counts)

    def _link_cost(self, pair: tuple[int, ...]) -> int:
        return self._links[sum(pair)]

    def _of_alike(self, free: int, size: int) -> Iterator[int]:
        """Give subsets that take the lowest of like GPUs; the others differ in order alone."""
        lowest = [lowest_of(like & free) for like in self.layout.alike_gpus]
        for counts in product(*(range(len(masks)) for masks in lowest)):
            if sum(counts) == size:
                yield sum(masks[count] for masks, count in zip(lowest, counts, strict=True))


@lru_cache(maxsize=4096)
def lowest_of(mask: int) -> tuple[int, ...]:
    """Give the masks of the lowest 0, 1, 2, ... devices of a mask."""
    return tuple(accumulate(bits_of(mask), initial=0))


def bits_of(mask: int) -> list[int]:
    """Give a mask's devices as masks of one each, lowest first."""
    bits = []
    while mask:
        bits.append(mask & -mask)
        mask &= mask - 1
    return bits
