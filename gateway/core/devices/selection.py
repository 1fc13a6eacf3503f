"""The best set of GPUs and NICs on one node, by plain search over all subsets.

Exact and slow on purpose: it stays as the oracle for any faster search. Results are remembered, for
a fleet has few machine types and few free states at a time. `min(gpus, nics)` disjoint GPU-NIC
pairs are formed, nearest first; the pair rule holds when every pair is near enough. Since a PCIe
switch lies inside one NUMA node, pairing inside switches first, then inside NUMA nodes, gives the
smallest sum of distances.
"""

from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from itertools import combinations
from typing import NamedTuple

from gateway.core.devices.fleet import DeviceSlot, MachineType
from gateway.core.vocabulary import PairRule

SWITCH_DISTANCE, NUMA_DISTANCE, NODE_DISTANCE = 0, 1, 2
ALLOWED_DISTANCE = {
    PairRule.SWITCH: SWITCH_DISTANCE,
    PairRule.NUMA: NUMA_DISTANCE,
    PairRule.NODE: NODE_DISTANCE,
    PairRule.NONE: NODE_DISTANCE,
}


class Choice(NamedTuple):
    """Chosen devices as masks of ordinals; `is_aligned` says whether the pair rule holds."""

    gpu_mask: int
    nic_mask: int
    is_aligned: bool


class DeviceWish(NamedTuple):
    """How many devices one pod wants, and how near to each other."""

    gpus: int
    nics: int
    rule: PairRule
    is_required: bool


@lru_cache(maxsize=65536)
def choose_devices(
    machine: MachineType, gpu_free: int, nic_free: int, wish: DeviceWish
) -> Choice | None:
    """Give the best choice, or None when the wish cannot be met.

    Ordered by: rule met, sum of pair distances, GPU pairs without a direct link, switch groups
    broken open, device order.
    """
    gpus = [slot for slot in machine.gpus if gpu_free >> slot.ordinal & 1]
    nics = [slot for slot in machine.nics if nic_free >> slot.ordinal & 1]
    if len(gpus) < wish.gpus or len(nics) < wish.nics:
        return None
    whole = _whole_switches(machine, gpu_free, nic_free)
    best: tuple[tuple[object, ...], Choice] | None = None
    for gpu_set in combinations(gpus, wish.gpus):
        links = _missing_links(gpu_set)
        for nic_set in combinations(nics, wish.nics):
            candidate = _judge(gpu_set, nic_set, wish, whole)
            if candidate is None:
                continue
            is_aligned, distance, damage = candidate
            key = (not is_aligned, distance, links, damage, _order(gpu_set), _order(nic_set))
            if best is None or key < best[0]:
                best = (key, Choice(mask_of(gpu_set), mask_of(nic_set), is_aligned))
    return best[1] if best else None


def mask_of(slots: Iterable[DeviceSlot]) -> int:
    """Give the mask of these slots' ordinals."""
    return sum(1 << slot.ordinal for slot in slots)


def pair_distances(gpus: Iterable[DeviceSlot], nics: Iterable[DeviceSlot]) -> list[int]:
    """Give the distances of the best disjoint GPU-NIC pairs, nearest first."""
    gpu_list, nic_list = list(gpus), list(nics)
    pairs = min(len(gpu_list), len(nic_list))
    by_switch = _common(Counter(_switches(gpu_list)), Counter(_switches(nic_list)))
    # Pairs inside a switch are inside its NUMA node as well, so the NUMA count contains them.
    by_numa = max(by_switch, _common(Counter(_numas(gpu_list)), Counter(_numas(nic_list))))
    return (
        [SWITCH_DISTANCE] * by_switch
        + [NUMA_DISTANCE] * (by_numa - by_switch)
        + [NODE_DISTANCE] * (pairs - by_numa)
    )


def _judge(
    gpu_set: tuple[DeviceSlot, ...],
    nic_set: tuple[DeviceSlot, ...],
    wish: DeviceWish,
    whole: frozenset[int],
) -> tuple[bool, int, int] | None:
    distances = pair_distances(gpu_set, nic_set)
    is_aligned = all(distance <= ALLOWED_DISTANCE[wish.rule] for distance in distances)
    if wish.is_required and not is_aligned:
        return None
    touched = {slot.switch for slot in (*gpu_set, *nic_set)}
    return is_aligned, sum(distances), len(touched & whole)


def _common(left: Counter[int], right: Counter[int]) -> int:
    return sum((left & right).values())


def _switches(slots: list[DeviceSlot]) -> list[int]:
    return [slot.switch for slot in slots if slot.switch >= 0]


def _numas(slots: list[DeviceSlot]) -> list[int]:
    return [slot.numa for slot in slots if slot.numa >= 0]


def _missing_links(gpu_set: tuple[DeviceSlot, ...]) -> int:
    """Count GPU pairs that share neither an NVLink group nor a NUMA node."""
    return sum(
        1
        for left, right in combinations(gpu_set, 2)
        if (left.nvlink_group < 0 or left.nvlink_group != right.nvlink_group)
        and (left.numa < 0 or left.numa != right.numa)
    )


def _whole_switches(machine: MachineType, gpu_free: int, nic_free: int) -> frozenset[int]:
    """Give the switches of which every device is free: breaking one open costs later gangs."""
    broken = {slot.switch for slot in machine.gpus if not gpu_free >> slot.ordinal & 1}
    broken |= {slot.switch for slot in machine.nics if not nic_free >> slot.ordinal & 1}
    known = {slot.switch for slot in (*machine.gpus, *machine.nics) if slot.switch >= 0}
    return frozenset(known - broken)


def _order(slots: tuple[DeviceSlot, ...]) -> tuple[int, ...]:
    return tuple(slot.ordinal for slot in slots)
