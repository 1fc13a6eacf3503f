"""Placement policies: where the pods of one gang go. All of them or none.

A policy is a function of the free room, the gang's pod sets and the nodes each may use. It takes
what it gives from the room, or leaves the room as it was and gives None.
"""

from collections.abc import Iterator
from typing import Protocol

import numpy as np

from gateway.core.devices.fleet import Bool
from gateway.core.devices.room import PodPlace, Room
from gateway.core.devices.selection import DeviceWish, choose_devices
from gateway.core.jobs.request import PodSetRequest
from gateway.core.resources import CPU, GPU, RDMA

GangPlaces = dict[str, list[PodPlace]]
"""Places by pod set name, in order of pod index."""


class PlacementPolicy(Protocol):
    """Place a whole gang, or nothing."""

    def __call__(
        self, room: Room, pod_sets: tuple[PodSetRequest, ...], nodes: dict[str, Bool]
    ) -> GangPlaces | None:
        """Give every pod's place; `nodes` is a mask of allowed nodes by pod set name."""


def pack(
    room: Room, pod_sets: tuple[PodSetRequest, ...], nodes: dict[str, Bool]
) -> GangPlaces | None:
    """Fill nodes that are already in use first, so that whole nodes stay free for large gangs."""
    # Unlike pod sets can stand in each other's way, so the other order gets a try as well.
    by_size = sorted(pod_sets, key=_weight, reverse=True)
    orders = [by_size] if len(by_size) == 1 else [by_size, by_size[::-1]]
    mark = room.mark()
    for order in orders:
        places: GangPlaces = {}
        if all(_place_set(room, pod_set, nodes[pod_set.name], places) for pod_set in order):
            return places
        room.back_to(mark)
    return None


def _weight(pod_set: PodSetRequest) -> tuple[int, int, str]:
    wanted = dict(pod_set.per_pod)
    return wanted.get(GPU, 0), wanted.get(CPU, 0), pod_set.name


def _place_set(room: Room, pod_set: PodSetRequest, allowed: Bool, places: GangPlaces) -> bool:
    used = {place.row for chosen in places.values() for place in chosen}
    mine = places.setdefault(pod_set.name, [])
    for _ in range(pod_set.count):
        place = _place_pod(room, pod_set, allowed, used)
        if place is None:
            return False
        room.take(place, pod_set)
        used.add(place.row)
        mine.append(place)
    return True


def _place_pod(
    room: Room, pod_set: PodSetRequest, allowed: Bool, used: set[int]
) -> PodPlace | None:
    fits = room.fits_amounts(pod_set) & allowed & room.is_available
    unaligned: PodPlace | None = None
    for row in _tightest_first(room, fits, used):
        wish = wish_of(pod_set)
        choice = choose_devices(
            room.fleet.machines[room.fleet.machine[row]],
            int(room.gpu_free[row]),
            int(room.nic_free[row]),
            wish,
        )
        if choice is None:
            continue
        place = PodPlace(row, choice.gpu_mask, choice.nic_mask)
        if choice.is_aligned:
            return place
        # A preferred rule that does not hold here may hold on a later node.
        unaligned = unaligned or place
    return unaligned


def _tightest_first(room: Room, fits: Bool, used: set[int]) -> Iterator[int]:
    """Give fitting nodes: the gang's own first, then those with least left, then by name."""
    rows = np.flatnonzero(fits)
    gpus = np.bitwise_count(room.gpu_free[rows])
    cpu_column = room.fleet.resources.index(CPU) if CPU in room.fleet.resources else None
    cpus = room.free[rows, cpu_column] if cpu_column is not None else np.zeros(len(rows))
    foreign = np.array([row not in used for row in rows], dtype=np.bool_)
    for position in np.lexsort((rows, cpus, gpus, foreign)):
        yield int(rows[position])


def wish_of(pod_set: PodSetRequest) -> DeviceWish:
    """Give what one pod wants of a node's devices."""
    wanted = dict(pod_set.per_pod)
    return DeviceWish(
        wanted.get(GPU, 0), wanted.get(RDMA, 0), pod_set.pair, pod_set.is_pair_required
    )


PLACEMENT: dict[str, PlacementPolicy] = {"pack": pack}
