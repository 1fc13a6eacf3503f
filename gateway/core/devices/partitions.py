"""NVLink partitions of a machine type: which GPUs may be joined apart from the others.

A machine type's own table counts; without one, each NVLink group is cut into aligned halves,
quarters and so on, as fabric managers of eight-GPU boards do (NVIDIA Fabric Manager user guide,
partitions of shared NVSwitch systems). Knows nothing of what is free.
"""

from collections.abc import Iterator, Mapping
from itertools import chain, combinations

from gateway.core.devices.fleet import MachineType, Partition
from gateway.core.devices.topology import is_joined

UNJOINED = 1 << 20
"""Link cost of GPUs that are no partition: more than any machine's links cost together."""


def partitions_of(machine: MachineType) -> tuple[Partition, ...]:
    """Give the partitions of a machine type."""
    return machine.partitions or tuple(_usual(machine))


def costs_of(machine: MachineType) -> Mapping[int, int]:
    """Give the cost of each partition by its mask: the slower its ring, the more."""
    partitions = partitions_of(machine)
    best: dict[int, int] = {}
    for each in partitions:
        best[each.size] = max(each.bandwidth, best.get(each.size, 0))
    return {each.gpus: best[each.size] - each.bandwidth for each in partitions}


def _usual(machine: MachineType) -> Iterator[Partition]:
    groups: dict[int, list[int]] = {}
    for slot in machine.gpus:
        # A GPU without NVLink is joined to nobody, so it is a group of its own.
        key = slot.nvlink_group if slot.nvlink_group >= 0 else -1 - slot.ordinal
        groups.setdefault(key, []).append(slot.ordinal)
    for ordinals in chain.from_iterable(map(_aligned, groups.values())):
        if all(is_joined(machine, *pair) for pair in combinations(ordinals, 2)):
            yield Partition(len(ordinals), sum(1 << ordinal for ordinal in ordinals))


def _aligned(ordinals: list[int]) -> Iterator[list[int]]:
    size = 1
    while size <= len(ordinals):
        for first in range(0, len(ordinals) - size + 1, size):
            yield ordinals[first : first + size]
        size *= 2
