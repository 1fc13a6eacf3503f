"""How near the devices of one machine type are to each other, as masks and counts.

Two facts are used: which PCIe switch and which NUMA node a device hangs under. A switch lies inside
one NUMA node, so groups nest. Knows nothing of nodes, gangs or what is free.
"""

from functools import lru_cache
from itertools import combinations, pairwise
from typing import NamedTuple

from gateway.core.devices.fleet import DeviceSlot, MachineType
from gateway.core.devices.masks import bits_of
from gateway.core.vocabulary import PairRule

Group = tuple[int, int]
"""Masks of the GPUs and of the NICs under one switch or NUMA node."""

NUMA_DISTANCE, NODE_DISTANCE = 1, 2
"""Distance of a GPU-NIC pair that shares no switch, or not even a NUMA node; 0 under a switch."""


class Layout(NamedTuple):
    """What a machine type's topology comes down to."""

    switches: tuple[Group, ...]
    numas: tuple[Group, ...]
    alike_gpus: tuple[int, ...]
    """Masks of GPUs that are exchangeable but for their ordinal."""
    alike_nics: tuple[int, ...]
    links: tuple[tuple[int, int, int], ...]
    """(ordinal, other ordinal, cost): 0 over NVLink, 1 under a switch, 2 in a NUMA node, else 3."""


class Pairing(NamedTuple):
    """How well GPUs and NICs go together; smaller is better."""

    is_broken: bool
    """Some pair is farther apart than the rule allows."""
    distance: int
    """Sum over all pairs."""


@lru_cache(maxsize=256)
def layout_of(machine: MachineType) -> Layout:
    """Give the layout of a machine type."""
    numa_of_switch = _numa_of_switches(machine)
    # GPUs and NICs by the same rule, so that equal places mean equal distance between kinds, too.
    gpus = {slot.ordinal: _place(slot, numa_of_switch) for slot in machine.gpus}
    if machine.is_c2c:
        # Their traffic goes by the CPU whatever PCIe says, so no switch brings a NIC nearer.
        gpus = {ordinal: (-1, numa) for ordinal, (_, numa) in gpus.items()}
    nics = {slot.ordinal: _place(slot, numa_of_switch) for slot in machine.nics}
    return Layout(
        switches=_groups(gpus, nics, level=0),
        numas=_groups(gpus, nics, level=1),
        alike_gpus=_alike(
            {slot.ordinal: (*gpus[slot.ordinal], *_joints(machine, slot)) for slot in machine.gpus}
        ),
        alike_nics=_alike(dict(nics)),
        links=tuple(
            (one, two, 0 if is_joined(machine, one, two) else _pcie_cost(gpus[one], gpus[two]))
            for one, two in combinations(sorted(gpus), 2)
        ),
    )


def is_joined(machine: MachineType, one: int, two: int) -> bool:
    """Whether two GPUs, the lower ordinal first, are joined by NVLink as their group is."""
    groups = {slot.nvlink_group for slot in machine.gpus if slot.ordinal in {one, two}}
    return len(groups) == 1 and min(groups) >= 0 and (one, two) not in machine.links


def _joints(machine: MachineType, slot: DeviceSlot) -> tuple[int, int]:
    """Give the NVLink group, and what sets a GPU with a bad link apart from others of it."""
    is_hurt = any(slot.ordinal in pair for pair in machine.links)
    return slot.nvlink_group, slot.ordinal if is_hurt else -1


def _numa_of_switches(machine: MachineType) -> dict[int, int]:
    """Give the NUMA node of each switch: the first that is known of a device on it."""
    found: dict[int, int] = {}
    for slot in (*machine.gpus, *machine.nics):
        if slot.switch >= 0 and slot.numa >= 0:
            found.setdefault(slot.switch, slot.numa)
    return found


def pairing(layout: Layout, gpus: int, nics: int, rule: PairRule) -> Pairing:
    """Give the best pairing of these devices: every NIC goes with a GPU, spread evenly.

    With no more NICs than GPUs each NIC has a GPU of its own. With more, the GPUs that carry one
    NIC more than others are chosen well.
    """
    gpu_count, nic_count = gpus.bit_count(), nics.bit_count()
    if not gpu_count or not nic_count:
        return Pairing(is_broken=False, distance=0)
    each, rest = divmod(nic_count, gpu_count)
    # Fewer NICs than GPUs: the GPUs without one are whichever make the others' pairs nearest.
    if not each:
        return _paired(layout, (gpus, nics), (1, 0), rule)
    return min(
        _paired(layout, (gpus, nics), (each, busier), rule) for busier in _subsets(gpus, rest)
    )


def pods_that_fit(groups: tuple[Group, ...], gpus: int, nics: int, wanted: tuple[int, int]) -> int:
    """Give how many pods alike find GPUs with all their NICs inside one group each.

    Exact: each GPU serves q or q + 1 NICs of its group (q, r = divmod(nics, gpus) per pod; r of the
    pod's GPUs serve one more). Taking another GPU of a group changes the number of "one more" that
    the group can serve by less and less, so the best steps may be taken greedily.
    """
    each, rest = divmod(wanted[1], wanted[0])
    steps: list[int] = []
    for group_gpus, group_nics in (*groups, _ungrouped(groups, gpus)):
        steps += _steps((group_gpus & gpus).bit_count(), (group_nics & nics).bit_count(), each)
    # The gain of one more GPU in a group never grows (it is min of two lines), so taking the best
    # steps of all groups first is taking the best set of GPUs there is.
    steps.sort(reverse=True)
    pods = len(steps) // wanted[0]
    # Pods that find GPUs may still lack NICs; fewer pods lack fewer.
    while pods and sum(steps[: pods * wanted[0]]) < pods * rest:
        pods -= 1
    return pods


def _steps(gpus: int, nics: int, each: int) -> list[int]:
    """Give how each further GPU of a group changes the number of "one more" it can serve."""
    most = min(gpus, nics // each) if each else gpus
    spare = [min(count, nics - each * count) for count in range(most + 1)]
    return [after - before for before, after in pairwise(spare)]


def _subsets(mask: int, size: int) -> list[int]:
    return list(map(sum, combinations(bits_of(mask), size)))


def _paired(layout: Layout, chosen: Group, load: tuple[int, int], rule: PairRule) -> Pairing:
    total = chosen[1].bit_count()
    switch = _near(layout.switches, chosen, load)
    numa = _near(layout.numas, chosen, load)
    near = {PairRule.SWITCH: switch, PairRule.NUMA: numa}.get(rule, total)
    distance = (numa - switch) * NUMA_DISTANCE + (total - numa) * NODE_DISTANCE
    return Pairing(is_broken=near < total, distance=distance)


def _near(groups: tuple[Group, ...], chosen: Group, load: tuple[int, int]) -> int:
    """Count the NICs that can be served inside their group; groups do not overlap."""
    each, busier = load
    return sum(
        min(
            each * (gpus & chosen[0]).bit_count() + (gpus & busier).bit_count(),
            (nics & chosen[1]).bit_count(),
        )
        for gpus, nics in groups
    )


def _place(slot: DeviceSlot, numa_of_switch: dict[int, int]) -> tuple[int, int]:
    """Give (switch, NUMA node); the switch decides, so that groups nest whatever was reported."""
    if slot.switch < 0:
        # Without a switch it is near what shares its NUMA node, and no nearer.
        return -1, slot.numa
    # A switch whose NUMA node nobody knows counts as a NUMA node of its own.
    return slot.switch, numa_of_switch.get(slot.switch, -2 - slot.switch)


def _groups(
    gpus: dict[int, tuple[int, int]], nics: dict[int, tuple[int, int]], level: int
) -> tuple[Group, ...]:
    keys = sorted({place[level] for place in (*gpus.values(), *nics.values())} - {-1})
    return tuple((_mask(gpus, level, key), _mask(nics, level, key)) for key in keys)


def _mask(places: dict[int, tuple[int, int]], level: int, key: int) -> int:
    return sum(1 << ordinal for ordinal, place in places.items() if place[level] == key)


def _alike(kinds: dict[int, tuple[int, ...]]) -> tuple[int, ...]:
    return tuple(
        sum(1 << ordinal for ordinal, other in kinds.items() if other == kind)
        for kind in sorted(set(kinds.values()))
    )


def _pcie_cost(one: tuple[int, int], two: tuple[int, int]) -> int:
    # NVLink beats PCIe however the GPUs hang: 0 although they may sit on two NUMA nodes.
    if one[0] == two[0] >= 0:
        return 1
    return 2 if one[1] == two[1] != -1 else 3


def _ungrouped(groups: tuple[Group, ...], gpus: int) -> Group:
    # Sums are unions here, since groups do not overlap.
    return gpus & ~sum(group[0] for group in groups), 0
