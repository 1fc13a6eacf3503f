"""The best set of GPUs and NICs on one node, by plain search over all subsets.

Exact and slow on purpose: what the product's search is compared with. It tries every set of GPUs
with every set of NICs and compares whole choices field by field.
"""

from collections.abc import Iterator
from functools import lru_cache
from itertools import combinations, product

from gateway.core.devices.fleet import MachineType
from gateway.core.devices.partitions import partitions_of
from gateway.core.devices.selection import Choice, DeviceWish, pods_on
from gateway.core.devices.topology import Group, Layout, layout_of, pairing
from gateway.core.vocabulary import PartitionRule

Key = tuple[bool, int, int, tuple[tuple[int, int, int], ...]]


def plain_choice(
    machine: MachineType, gpu_free: int, nic_free: int, wish: DeviceWish
) -> Choice | None:
    """Give the best choice, the first in device order of equal ones."""
    layout = layout_of(machine)
    best: tuple[Key, Choice] | None = None
    nic_sets = sets_of(nic_free, wish.nics, layout.alike_nics)
    for gpus, nics in product(gpu_sets(machine, gpu_free, wish), nic_sets):
        is_broken, distance = pairing(layout, gpus, nics, wish.rule)
        links = link_costs(layout, gpus) + partition_cost(machine, gpus, wish)
        # What stays free is slow to judge, so only for what could still win.
        if (wish.is_required and is_broken) or (
            best and (is_broken, distance, links) > best[0][:3]
        ):
            continue
        left = gpu_free & ~gpus, nic_free & ~nics
        if wish.siblings and pods_on(machine, *left, wish) < wish.siblings:
            continue
        key = (is_broken, distance, links, sizes_left(layout, *left))
        if best is None or key < best[0]:
            best = (key, Choice(gpus, nics, is_aligned=not is_broken))
    return best[1] if best else None


def gpu_sets(machine: MachineType, free: int, wish: DeviceWish) -> tuple[int, ...]:
    """Give the sets of GPUs that the partition rule allows."""
    if wish.partition is PartitionRule.NONE:
        return sets_of(free, wish.gpus, layout_of(machine).alike_gpus)
    # In partitions every GPU is different.
    sets = sets_of(free, wish.gpus, tuple(1 << slot.ordinal for slot in machine.gpus))
    if wish.partition is PartitionRule.PREFER:
        return sets
    allowed = {each.gpus for each in partitions_of(machine)} | {0}
    return tuple(each for each in sets if each in allowed)


def partition_cost(machine: MachineType, gpus: int, wish: DeviceWish) -> int:
    """Give how much slower a partition is than the best of its size; a lot for what is none."""
    if wish.partition is PartitionRule.NONE:
        return 0
    same = {each.gpus: each.bandwidth for each in partitions_of(machine) if each.size == wish.gpus}
    return max(same.values()) - same[gpus] if gpus in same else 1 << 20


@lru_cache(maxsize=65536)
def sets_of(mask: int, size: int, alike: tuple[int, ...]) -> tuple[int, ...]:
    """Give the subsets of a size in device order; of like devices always the lowest."""
    kinds = [list(_lowest(mask & like)) for like in alike]
    chosen = (
        sum(kind[count] for kind, count in zip(kinds, counts, strict=True))
        for counts in product(*(range(len(kind)) for kind in kinds))
        if sum(counts) == size
    )
    return tuple(sorted(chosen, key=ordinals))


def ordinals(mask: int) -> list[int]:
    """Give the ordinals in a mask."""
    return [bit for bit in range(mask.bit_length()) if mask >> bit & 1]


def _lowest(mask: int) -> Iterator[int]:
    return (
        sum(1 << bit for bit in ordinals(mask)[:count]) for count in range(mask.bit_count() + 1)
    )


@lru_cache(maxsize=65536)
def link_costs(layout: Layout, gpus: int) -> int:
    """Give the sum over all pairs of GPUs."""
    pairs = set(combinations(ordinals(gpus), 2))
    return sum(cost for one, two, cost in layout.links if (one, two) in pairs)


@lru_cache(maxsize=65536)
def sizes_left(layout: Layout, gpus: int, nics: int) -> tuple[tuple[int, int, int], ...]:
    """Give the sizes of what stays together, so that keeping the largest groups compares less."""
    return tuple(
        size
        for level in (layout.numas, layout.switches)
        for size in sorted(_negative_size(group, gpus, nics) for group in level)
    )


def _negative_size(group: Group, gpus: int, nics: int) -> tuple[int, int, int]:
    free_gpus, free_nics = (group[0] & gpus).bit_count(), (group[1] & nics).bit_count()
    return -min(free_gpus, free_nics), -free_gpus, -free_nics
