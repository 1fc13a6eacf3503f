"""Pods that ask for GPUs and NICs in one NUMA node, on full machines where some end all the time.

Chosen either as pairs, by the product, or GPUs first: those that are nearest to each other, and
then the nearest NICs that are left, as where two plugins that know nothing of each other choose.
"""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from statistics import mean
from typing import NamedTuple

import numpy as np

from gateway.core.devices.rows import DeviceRow
from gateway.core.jobs.request import PodSetRequest
from gateway.core.placing.room import PodPlace, Room
from gateway.core.policies.placement import pack
from gateway.core.vocabulary import DeviceKind, PairRule
from tests.builders import a_device, a_fleet, a_node, a_pod_set

NODES, DEVICES, NICS = 32, 8, 4
TURNS, WARM_UP = 3_000, 500
LOAD = 0.9
"""Of the GPUs; with more in use somebody ends, with less somebody asks."""
NUMAS = ((0x0F, 0b0011), (0xF0, 0b1100))
"""Masks of the GPUs and of the NICs of each NUMA node; half as many NICs, as on a p4d."""
SIZES = (1, 1, 1, 2, 2, 4, 4, 8)
Choose = Callable[[Room, PodSetRequest], PodPlace | None]


class Mixed(NamedTuple):
    """What came of one run, in shares."""

    stranded: float
    """Of the GPUs: free beside NICs that are free too, but not near; mean over the run."""
    refused: float
    """Of those who asked."""
    across: float
    """Of the pairs: GPU and NIC are in different NUMA nodes."""


@dataclass(slots=True)
class Run:
    """One run from a seed."""

    choose: Choose
    draw: random.Random
    room: Room = field(init=False)
    running: list[tuple[PodPlace, PodSetRequest]] = field(default_factory=list)
    asked: int = 0
    refused: int = 0
    pairs: int = 0
    across: int = 0
    stranded: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Start with idle machines."""
        nodes = [a_node(number) for number in range(NODES)]
        self.room = Room(a_fleet(nodes, [each for i in range(NODES) for each in devices(i)]))

    def turn(self) -> None:
        """Let somebody end or ask, whichever keeps the load."""
        free = int(np.bitwise_count(self.room.gpu_free).sum())
        if free < (1 - LOAD) * DEVICES * NODES:
            self._end(self.draw.randrange(len(self.running)))
            return
        pod = a_pod(self.draw)
        place = self.choose(self.room, pod)
        self.asked += 1
        if place is None:
            self.refused += 1
        else:
            self._take(place, pod)
        self.stranded.append(stranded(self.room))

    def _take(self, place: PodPlace, pod: PodSetRequest) -> None:
        self.pairs += place.nic_mask.bit_count()
        self.across += crossings(place.gpu_mask, place.nic_mask)
        self.room.take(place, pod)
        self.running.append((place, pod))

    def _end(self, index: int) -> None:
        place, pod = self.running.pop(index)
        amounts = {**dict(pod.per_pod), "pods": 1}
        self.room.give(place.row, place.gpu_mask, place.nic_mask, amounts)


def mixed(choose: Choose, seed: int) -> Mixed:
    """Give what comes of one way to choose."""
    run = Run(choose, random.Random(seed))  # noqa: S311 - a sample, not a secret
    for _ in range(TURNS):
        run.turn()
    lost = mean(run.stranded[WARM_UP:]) / (DEVICES * NODES)
    return Mixed(lost, run.refused / run.asked, run.across / run.pairs)


def stranded(room: Room) -> int:
    """Give how many pods of one GPU and a near NIC fit less than free GPUs and NICs would make."""
    gpus, nics = room.gpu_free, room.nic_free
    most = min(np.bitwise_count(gpus).sum(), np.bitwise_count(nics).sum())
    near = [
        np.minimum(np.bitwise_count(gpus & mine), np.bitwise_count(nics & its)).sum()
        for mine, its in NUMAS
    ]
    return int(most) - int(sum(near))


def devices(node_id: int) -> list[DeviceRow]:
    """Give a machine's devices; two GPUs share the switch of each NIC."""
    return [
        *(a_device(node_id, DeviceKind.GPU, i) for i in range(DEVICES)),
        *(a_device(node_id, DeviceKind.RDMA, i, switch=i, numa=i // 2) for i in range(NICS)),
    ]


def a_pod(draw: random.Random) -> PodSetRequest:
    """Give a pod that wants a NIC for each GPU, for every other one, or none.

    Never more than the NUMA nodes that its GPUs fill have, or nobody could choose GPUs first.
    """
    gpus = draw.choice(SIZES)
    most = NICS if gpus == DEVICES else NICS // 2
    nics = min(most, draw.choice((gpus, gpus, -(-gpus // 2), 0, 0)))
    return replace(a_pod_set(gpu=gpus, rdma=nics), pair=PairRule.NUMA)


def in_pairs(room: Room, pod: PodSetRequest) -> PodPlace | None:
    """Choose as the product does."""
    mark = room.mark()
    places = pack(room, (pod,), {pod.name: room.is_available})
    room.back_to(mark)
    return None if places is None else places[pod.name][0]


def gpus_first(room: Room, pod: PodSetRequest) -> PodPlace | None:
    """Choose GPUs first, on the fullest node with as many of both, wherever its NICs are then."""
    return next(_gpus_first(room, pod), None)


def gpus_first_near(room: Room, pod: PodSetRequest) -> PodPlace | None:
    """Choose GPUs first, on the fullest node on which the NICs turn out to be near enough."""
    near = (place for place in _gpus_first(room, pod) if not crossings(*place[1:]))
    return next(near, None)


def _gpus_first(room: Room, pod: PodSetRequest) -> Iterator[PodPlace]:
    wanted = dict(pod.per_pod)
    gpus, nics = wanted["gpu"], wanted.get("rdma", 0)
    fitting = (np.bitwise_count(room.gpu_free) >= gpus) & (np.bitwise_count(room.nic_free) >= nics)
    rows = np.flatnonzero(fitting)
    for row in rows[np.argsort(room.fullness[rows], kind="stable")].tolist():
        chosen = nearest_gpus(int(room.gpu_free[row]), gpus)
        yield PodPlace(row, chosen, nearest_nics(int(room.nic_free[row]), nics, chosen))


def nearest_gpus(free: int, count: int) -> int:
    """Give GPUs of one NUMA node, the fullest that has as many, else of both."""
    enough = [free & numa for numa, _ in NUMAS if (free & numa).bit_count() >= count]
    return lowest(min(enough, key=int.bit_count, default=free), count)


def nearest_nics(free: int, count: int, gpus: int) -> int:
    """Give one NIC for each GPU of a NUMA node while there are, then any others."""
    chosen = 0
    for near_gpus, near_nics in NUMAS:
        free_here = free & near_nics
        missing = count - chosen.bit_count()
        served = min((gpus & near_gpus).bit_count(), free_here.bit_count(), missing)
        chosen |= lowest(free_here, served)
    return chosen | lowest(free & ~chosen, count - chosen.bit_count())


def lowest(mask: int, count: int) -> int:
    """Give so many of a mask's bits, the lowest first."""
    chosen = 0
    for _ in range(count):
        chosen |= (mask & ~chosen) & -(mask & ~chosen)
    return chosen


def crossings(gpus: int, nics: int) -> int:
    """Give how many NICs find no GPU of their own in their NUMA node; NICs are not more."""
    counts = (((gpus & mine).bit_count(), (nics & near).bit_count()) for mine, near in NUMAS)
    return sum(max(0, near - mine) for mine, near in counts)
