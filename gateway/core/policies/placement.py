"""Placement policies: where the pods of one gang go. All of them or none.

A policy is a function of the free room, the gang's pod sets and the nodes each may use. It takes
what it gives from the room, or leaves the room as it was and gives None.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Protocol

import numpy as np

from gateway.core.devices.fleet import Bool, Int64
from gateway.core.jobs.request import PodSetRequest
from gateway.core.placing.room import PodPlace, Room
from gateway.core.resources import CPU, GPU

PodSets = tuple[PodSetRequest, ...]
GangPlaces = dict[str, list[PodPlace]]
"""Places by pod set name, in order of pod index."""


class PlacementPolicy(Protocol):
    """Place a whole gang, or nothing."""

    def __call__(self, room: Room, pod_sets: PodSets, nodes: dict[str, Bool]) -> GangPlaces | None:
        """Give every pod's place; `nodes` is a mask of allowed nodes by pod set name."""


def pack(room: Room, pod_sets: PodSets, nodes: dict[str, Bool]) -> GangPlaces | None:
    """Use few nodes, and of those the fullest, so that whole nodes stay free for large gangs.

    Preferred pair rules are first taken as required. The search is exact where at most one pod set
    has more than one pod, which covers every PyTorchJob.
    """
    strict = tuple(replace(pod_set, is_pair_required=True) for pod_set in pod_sets)
    for attempt in dict.fromkeys((strict, pod_sets)):
        places = _place(room, attempt, nodes)
        if places is not None:
            return places
    return None


def _place(room: Room, pod_sets: PodSets, nodes: dict[str, Bool]) -> GangPlaces | None:
    if any(room.capacity(each, nodes[each.name]).sum() < each.count for each in pod_sets):
        return None
    places = _fill_all(room, sorted(pod_sets, key=_size, reverse=True), nodes)
    if places is not None:
        return places
    # A single pod may stand in the way of the others: try it on every kind of node.
    return _search(room, sorted(pod_sets, key=lambda each: (each.count > 1, each.name)), nodes)


def _search(room: Room, pod_sets: list[PodSetRequest], nodes: dict[str, Bool]) -> GangPlaces | None:
    """Try the first set on each kind of node, and the rest around it; the last just fills."""
    first, *rest = pod_sets
    if not rest or first.count > 1:
        return _fill_all(room, pod_sets, nodes)
    mark = room.mark()
    for place in _different_places(room, first, nodes):
        room.take(place, first)
        found = _search(room, rest, nodes)
        if found is not None:
            return {first.name: [place], **found}
        room.back_to(mark)
    return None


def _different_places(
    room: Room, pod_set: PodSetRequest, nodes: dict[str, Bool]
) -> Iterator[PodPlace]:
    """Give a place for one pod on each kind of node that can take it, fullest first."""
    capacity = room.capacity(pod_set, nodes[pod_set.name])
    kinds: dict[tuple[object, ...], int] = {}
    for row in _fullest_first(room, capacity, set()):
        allowed = tuple(bool(mask[row]) for mask in nodes.values())
        kinds.setdefault((*room.state(row), allowed), row)
    yield from filter(None, (room.choose(row, pod_set, siblings=0) for row in kinds.values()))


def _size(pod_set: PodSetRequest) -> tuple[int, int, str]:
    wanted = dict(pod_set.per_pod)
    return wanted.get(GPU, 0), wanted.get(CPU, 0), pod_set.name


def _fill_all(
    room: Room, pod_sets: list[PodSetRequest], nodes: dict[str, Bool]
) -> GangPlaces | None:
    """Take room for one set after the other; for none of them when one finds too little."""
    mark = room.mark()
    places: GangPlaces = {}
    if all(_fill(room, pod_set, nodes, places) for pod_set in pod_sets):
        return places
    room.back_to(mark)
    return None


def _fill(room: Room, pod_set: PodSetRequest, nodes: dict[str, Bool], places: GangPlaces) -> bool:
    """Take room for a whole pod set; on False some of it may be taken."""
    used = {place.row for chosen in places.values() for place in chosen}
    mine = places.setdefault(pod_set.name, [])
    capacity = room.capacity(pod_set, nodes[pod_set.name])
    while len(mine) < pod_set.count:
        missing = pod_set.count - len(mine)
        row = _next_row(room, capacity, missing, used)
        if row is None:
            return False
        mine += room.take_many(row, pod_set, min(missing, int(capacity[row])))
        capacity[row] = 0
    return True


def _next_row(room: Room, capacity: Int64, missing: int, used: set[int]) -> int | None:
    """Give the fullest node that can take all that is missing, else one that can take most."""
    most = int(capacity.max(initial=0))
    if not most:
        return None
    return next(_fullest_first(room, np.where(capacity >= min(missing, most), capacity, 0), used))


def _fullest_first(room: Room, capacity: Int64, used: set[int]) -> Iterator[int]:
    """Give nodes with capacity: the gang's own first, then those with least left, then by name."""
    rows = np.flatnonzero(capacity)
    gpus = np.bitwise_count(room.gpu_free[rows])
    has_cpu = CPU in room.fleet.resources
    cpus = room.free[rows, room.fleet.resources.index(CPU)] if has_cpu else np.zeros(len(rows))
    others = ~np.isin(rows, sorted(used))
    yield from rows[np.lexsort((rows, cpus, gpus, others))].tolist()


PLACEMENT: dict[str, PlacementPolicy] = {"pack": pack}
