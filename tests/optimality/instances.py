"""Random instances by seed: one queue without quota, a fleet, and gangs in line."""

from collections.abc import Sequence

from gateway.core.admission import Snapshot
from gateway.core.devices.fleet import Fleet
from gateway.core.devices.rows import DeviceRow, NodeRow
from gateway.core.jobs.request import PodSetRequest, RequestClass
from gateway.core.resources import amounts
from gateway.core.vocabulary import DeviceKind, PairRule
from tests.builders import a_device, a_fleet, a_node, a_snapshot, waiting_jobs
from tests.properties.strategies import Dice

DEVICES = 8
Busy = tuple[int, int]
"""Masks of the GPUs and of the NICs that are in use."""


def a_small_instance(seed: int) -> Snapshot:
    """Give up to 8 nodes of four switches, and up to 10 gangs, many with pair rules."""
    dice = Dice(seed)
    fleet = a_small_fleet(dice, dice.number(2, 8))
    return in_line([a_small_gang(dice) for _ in range(dice.number(4, 10))], fleet)


def a_small_fleet(dice: Dice, count: int) -> Fleet:
    """Give nodes on which gangs ran and partly ended, and few that are short of CPU."""
    nodes = [
        a_node(
            node_id,
            free={"cpu": dice.pick([*[192_000] * 9, 6000]), "memory": 2**40, "pods": 110},
            labels=(("rack", dice.pick(["r1", "r2"])),),
        )
        for node_id in range(1, count + 1)
    ]
    busy = dice.pick([0, 20, 40])
    return fleet_with(nodes, [blocks_in_use(dice, busy) for _ in nodes])


def blocks_in_use(dice: Dice, percent: int) -> Busy:
    """Give masks of devices that pods of one, two or four GPUs hold, each with as many NICs."""
    size = dice.pick([1, 2, 2, 4])
    block = (1 << size) - 1
    held = sum(block << start for start in range(0, DEVICES, size) if dice.happens(percent))
    return held, held if dice.happens(60) else 0


def a_small_gang(dice: Dice) -> RequestClass:
    """Give Workers under some required rule, now and then with a Master beside them."""
    gpus = dice.pick([1, 1, 2, 2, 4, 4, 8])
    nics = dice.pick([0, gpus, gpus, gpus // 2])
    workers = PodSetRequest(
        name="Worker",
        count=dice.pick([1, 1, 2, 2, 3, 4]),
        per_pod=amounts({"cpu": dice.pick([1000, 2000]), "gpu": gpus, "rdma": nics}),
        pair=dice.pick([PairRule.SWITCH, PairRule.SWITCH, PairRule.NUMA, PairRule.NONE]),
        level="rack" if dice.happens(15) else "",
    )
    if dice.happens(70):
        return RequestClass(pod_sets=(workers,))
    asks = {"cpu": dice.pick([1000, 3000]), "gpu": dice.pick([0, 0, 1])}
    master = PodSetRequest(name="Master", count=1, per_pod=amounts(asks))
    return RequestClass(pod_sets=(master, workers))


def a_large_instance(seed: int) -> Snapshot:
    """Give at least 64 nodes of 8 GPUs and 60 gangs of 1 to 32 GPUs that ask for more than all."""
    dice = Dice(seed)
    count = dice.number(64, 72)
    nodes = [a_node(node_id) for node_id in range(1, count + 1)]
    busy = [blocks_in_use(dice, dice.pick([0, 0, 0, 30, 100])) for _ in nodes]
    return in_line([a_large_gang(dice) for _ in range(60)], fleet_with(nodes, busy))


def a_large_gang(dice: Dice) -> RequestClass:
    """Give a gang of like pods with up to 32 GPUs in all; most pods ask for a power of two."""
    gpus = dice.pick([1, 1, 2, 2, 4, 4, 8, 8, 8, 8, 8, 3, 6])
    pods = dice.number(1, 32 // gpus) if dice.happens(80) else 1
    worker = PodSetRequest(
        name="Worker", count=pods, per_pod=amounts({"cpu": 1000, "gpu": gpus}), pair=PairRule.NONE
    )
    return RequestClass(pod_sets=(worker,))


def fleet_with(nodes: Sequence[NodeRow], busy: Sequence[Busy]) -> Fleet:
    """Give these nodes with all their devices but those in use."""
    devices = [
        a_free_or_busy(node.node_id, kind, ordinal, mask)
        for node, masks in zip(nodes, busy, strict=True)
        for kind, mask in zip((DeviceKind.GPU, DeviceKind.RDMA), masks, strict=True)
        for ordinal in range(DEVICES)
    ]
    return a_fleet(nodes, devices)


def a_free_or_busy(node_id: int, kind: DeviceKind, ordinal: int, busy: int) -> DeviceRow:
    """Give a device."""
    return a_device(node_id, kind, ordinal, units_free=0 if busy >> ordinal & 1 else 100)


def in_line(gangs: list[RequestClass], fleet: Fleet) -> Snapshot:
    """Let gangs wait in one queue, the first of them oldest; quota is no object."""
    classes = tuple(dict.fromkeys(gangs))
    waiting = waiting_jobs(
        classes,
        queue=[0] * len(gangs),
        request_class=[classes.index(gang) for gang in gangs],
        submitted_us=range(1, len(gangs) + 1),
    )
    return a_snapshot(waiting, fleet)
