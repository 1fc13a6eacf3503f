"""GPU subsets of a machine type by size, best linked first: worked out once, then only filtered.

Machines with more GPUs than lists are kept for get their subsets from counts of like GPUs.
"""

from collections.abc import Iterator
from functools import cached_property
from itertools import combinations, product
from typing import NamedTuple

from gateway.core.devices.fleet import DeviceSlot, MachineType
from gateway.core.devices.keys import Scale, gpu_key, scale_of
from gateway.core.devices.masks import bits_of, lowest_of
from gateway.core.devices.nests import Nest, nests_of
from gateway.core.devices.partitions import UNJOINED, costs_of
from gateway.core.devices.topology import Layout, layout_of
from gateway.core.vocabulary import PartitionRule

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
        self.gpus = _mask(machine.gpus)
        self.nests: tuple[Nest, ...] = nests_of(self.layout, self.gpus, _mask(machine.nics))
        self.scale: Scale = scale_of(self.layout)
        self._links = {1 << one | 1 << two: cost for one, two, cost in self.layout.links}
        self._partitions = costs_of(machine)

    @cached_property
    def lists(self) -> tuple[tuple[Subset, ...], ...]:
        """All subsets, by size."""
        bits = bits_of(self.gpus)
        return tuple(
            tuple(sorted(map(self.subset, map(sum, combinations(bits, size)))))
            for size in range(len(bits) + 1)
        )

    @cached_property
    def by_rule(self) -> dict[PartitionRule, tuple[tuple[Subset, ...], ...]]:
        """The same for each partition rule: all alike, partitions first, partitions only."""
        preferring = tuple(tuple(sorted(map(self._joined, each))) for each in self.lists)
        honouring = tuple(tuple(filter(self._is_partition, each)) for each in preferring)
        return {
            PartitionRule.NONE: self.lists,
            PartitionRule.PREFER: preferring,
            PartitionRule.HONOUR: honouring,
        }

    def within(self, free: int, size: int, rule: PartitionRule) -> list[Subset]:
        """Give the subsets of free GPUs that are worth a look, best linked first."""
        if self.gpus.bit_count() > MOST_LISTED:
            return self._unlisted(free, size, rule)
        busy = ~free
        return [subset for subset in self.by_rule[rule][size] if not subset.mask & busy]

    def subset(self, mask: int) -> Subset:
        """Give what is known of a subset."""
        links = sum(map(self._link_cost, combinations(bits_of(mask), 2)))
        counts = tuple(nest.counts(mask) for nest in self.nests)
        return Subset(gpu_key(self.scale, mask, links), mask, links, counts)

    def _joined(self, subset: Subset) -> Subset:
        """Give a subset whose links cost what it is worth as a partition, too."""
        links = subset.links + self._partitions.get(subset.mask, UNJOINED)
        key = gpu_key(self.scale, subset.mask, links)
        return subset._replace(key=key, links=links)

    def _link_cost(self, pair: tuple[int, ...]) -> int:
        return self._links[sum(pair)]

    def _is_partition(self, subset: Subset) -> bool:
        # Who asks for no GPU asks for nothing that could be split.
        return subset.mask in self._partitions or not subset.mask

    def _unlisted(self, free: int, size: int, rule: PartitionRule) -> list[Subset]:
        """Give the same where there are too many subsets to list them."""
        any_gpus = map(self.subset, self._of_alike(free, size))
        if rule is PartitionRule.NONE:
            return sorted(any_gpus)
        # The lowest of like GPUs need be no partition, so partitions are looked up by themselves.
        partitions = [each for each in self._partitions if each.bit_count() == size]
        fitting = [self.subset(each) for each in partitions if not each & ~free]
        found = sorted(map(self._joined, {*fitting, *any_gpus}))
        return found if rule is PartitionRule.PREFER else list(filter(self._is_partition, found))

    def _of_alike(self, free: int, size: int) -> Iterator[int]:
        """Give subsets that take the lowest of like GPUs; the others differ in order alone."""
        lowest = [lowest_of(like & free) for like in self.layout.alike_gpus]
        subsets = map(sum, product(*lowest))
        return (mask for mask in subsets if mask.bit_count() == size)


def _mask(slots: tuple[DeviceSlot, ...]) -> int:
    return sum(1 << slot.ordinal for slot in slots)
