"""How far the free GPUs of a fleet would go: room for pods of each size, and what they add up to.

Three figures for each size: pods that the sum of free GPUs would make, pods that nodes have room
for, and pods that find as many NICs under one switch as well. What lies between them is stranded:
in too small pieces on the nodes, or beside NICs that others took. Figures for people; no decision
is made by them.
"""

from typing import NamedTuple

import numpy as np

from gateway.core.devices.fleet import Fleet
from gateway.core.jobs.request import PodSetRequest
from gateway.core.placing.room import Room
from gateway.core.resources import GPU, RDMA, amounts
from gateway.core.vocabulary import PairRule


class Stranding(NamedTuple):
    """Room for pods of one size on the nodes that may be used now."""

    gpus: int
    """GPUs of one pod."""
    ideal: int
    """Pods that the free GPUs add up to."""
    fitting: int
    """Pods that have room at the same time, wherever their NICs are."""
    aligned: int
    """Pods that have room with a NIC for each GPU under the same PCIe switch."""


def stranding(room: Room) -> tuple[Stranding, ...]:
    """Give the figures for pods of 1, 2, 4 … GPUs, up to the largest node; empty without GPUs.

    CPU and memory are left out: the question is what the devices allow.
    """
    fleet = room.fleet
    free = int(np.bitwise_count(room.gpu_free[fleet.is_available]).sum())
    return tuple(
        Stranding(
            gpus=size,
            ideal=free // size,
            fitting=_room_for(room, size, nics=0),
            aligned=_room_for(room, size, nics=size),
        )
        for size in _sizes(fleet)
    )


def _sizes(fleet: Fleet) -> list[int]:
    largest = max((mask.bit_count() for mask in fleet.gpu_all.tolist()), default=0)
    # Powers of two, and a whole node where that is none (4 + 2 GPUs, or 6 left of 8).
    return sorted({1 << bit for bit in range(largest.bit_length())} | {largest} - {0})


def _room_for(room: Room, gpus: int, nics: int) -> int:
    pods = PodSetRequest(
        name="Worker",
        count=1,
        per_pod=amounts({GPU: gpus, RDMA: nics}),
        pair=PairRule.SWITCH if nics else PairRule.NONE,
    )
    return room.most(room.shapes.fits(pods))
