"""Keys of choices as single integers: the smaller, the better, and parts of a choice just add up.

From the highest field down: sum of pair distances, links between GPUs, groups left in NUMA nodes,
groups left under switches, order of GPUs, order of NICs. A search that adds keys part by part
therefore compares as a search that compares whole choices field by field.
"""

from dataclasses import dataclass
from functools import lru_cache
from itertools import product

from gateway.core.devices.masks import bits_of
from gateway.core.devices.topology import Group, Layout

ORDER_BITS = 64
"""More than the 62 devices of one kind that a mask can hold."""
LINK_BITS = 24
"""62 GPUs have 1,891 pairs of a cost below 16 each."""
_GPU_ORDER = ORDER_BITS
_SWITCHES = 2 * ORDER_BITS


@dataclass(frozen=True, slots=True, eq=False)
class Scale:
    """Where the fields of a machine type's keys are, and what sizes weigh in them.

    Compared by identity: its numbers are long.
    """

    switch: tuple[tuple[int, ...], ...]
    """What a switch with so many GPUs and NICs left takes off a key."""
    numa: tuple[tuple[int, ...], ...]
    """The same for a NUMA node."""
    link_at: int
    near: int
    """What a pair that shares a switch takes off, and again one that shares a NUMA node."""


def scale_of(layout: Layout) -> Scale:
    """Give the scale of a machine type."""
    switch, numa_at = _weights(layout.switches, _SWITCHES)
    numa, link_at = _weights(layout.numas, numa_at)
    return Scale(switch, numa, link_at, near=1 << link_at + LINK_BITS)


def gpu_key(scale: Scale, gpus: int, links: int) -> int:
    """Give what chosen GPUs add to a key."""
    return (links << scale.link_at) - (order_of(gpus) << _GPU_ORDER)


@lru_cache(maxsize=16384)
def order_of(mask: int) -> int:
    """Give a number that is the higher, the earlier a mask comes among those of equal size."""
    # In device order the mask that has the lowest differing device comes first.
    return sum(1 << ORDER_BITS - bit.bit_length() for bit in bits_of(mask))


def _weights(groups: tuple[Group, ...], at: int) -> tuple[tuple[tuple[int, ...], ...], int]:
    """Give the weight of each size of a group, and where the next field begins.

    Sizes are compared largest first, so each has a digit of its own that counts groups of it.
    """
    digit = max(len(groups).bit_length(), 1)
    most_gpus, most_nics = map(_most, zip(*groups or ((0, 0),), strict=True))
    ranked = _ranked(most_gpus, most_nics)
    weight = {size: 1 << at + digit * rank for rank, size in enumerate(ranked)}
    rows = range(most_gpus + 1)
    table = tuple(tuple(weight[gpus, nics] for nics in range(most_nics + 1)) for gpus in rows)
    return table, at + digit * len(ranked)


def _most(masks: tuple[int, ...]) -> int:
    return max(map(int.bit_count, masks))


def _ranked(most_gpus: int, most_nics: int) -> list[tuple[int, int]]:
    """Give all sizes of a group, smallest first."""
    sizes = product(range(most_gpus + 1), range(most_nics + 1))
    # What can serve pairs counts most, then GPUs, for they are what pods wait for.
    return sorted(sizes, key=lambda size: (min(size), size))
