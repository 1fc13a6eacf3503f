"""Placement without anything clever: columns copied, counted and searched anew at every step.

It is the oracle of the placement that the gateway uses: it gives the same nodes and devices for any
gang on any state. Slow on purpose.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import numpy as np

from gateway.core.devices.fleet import Bool, Fleet, Int64
from gateway.core.devices.selection import MANY_PODS, choose_devices, pods_on
from gateway.core.jobs.request import PodSetRequest
from gateway.core.placing.room import PodPlace, wish_of
from gateway.core.resources import CPU, GPU, PODS, RDMA

PodSets = tuple[PodSetRequest, ...]
Places = dict[str, list[PodPlace]]
Masks = dict[str, Bool]


class PlainRoom:
    """Free amounts and devices of every node."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self.free = fleet.free.copy()
        self.gpu_free = fleet.gpu_free.copy()
        self.nic_free = fleet.nic_free.copy()
        self.ports: list[frozenset[int]] = [frozenset()] * len(fleet)

    def copy(self) -> "PlainRoom":
        other = PlainRoom(self.fleet)
        other.free[:], other.gpu_free[:] = self.free, self.gpu_free
        other.nic_free[:], other.ports = self.nic_free, list(self.ports)
        return other

    def become(self, other: "PlainRoom") -> None:
        self.free[:], self.gpu_free[:] = other.free, other.gpu_free
        self.nic_free[:], self.ports = other.nic_free, list(other.ports)

    def take(self, place: PodPlace, pod_set: PodSetRequest) -> None:
        wanted = {**dict(pod_set.per_pod), PODS: 1}
        self.free[place.row] -= [wanted.get(name, 0) for name in self.fleet.resources]
        self.gpu_free[place.row] &= ~place.gpu_mask
        self.nic_free[place.row] &= ~place.nic_mask
        self.ports[place.row] |= set(pod_set.host_ports)

    def choose(self, row: int, pod_set: PodSetRequest, siblings: int) -> PodPlace | None:
        wish = wish_of(pod_set)._replace(siblings=siblings)
        machine = self.fleet.machines[self.fleet.machine[row]]
        choice = choose_devices(machine, int(self.gpu_free[row]), int(self.nic_free[row]), wish)
        return PodPlace(row, choice.gpu_mask, choice.nic_mask) if choice else None

    def pods_on(self, row: int, pod_set: PodSetRequest) -> int:
        """Give how many pods of a set one node takes."""
        if not self.fleet.is_available[row] or self.ports[row] & set(pod_set.host_ports):
            return 0
        machine = self.fleet.machines[self.fleet.machine[row]]
        gpus, nics = int(self.gpu_free[row]), int(self.nic_free[row])
        most = pods_on(machine, gpus, nics, wish_of(pod_set))
        free = dict(zip(self.fleet.resources, self.free[row].tolist(), strict=True))
        for name, amount in {**dict(pod_set.per_pod), PODS: 1}.items():
            if name not in {GPU, RDMA} and (name != PODS or PODS in free):
                most = min(most, max(0, free.get(name, 0)) // amount)
        return min(most, 1) if pod_set.host_ports else most

    def capacity(self, pod_set: PodSetRequest, allowed: Bool) -> Int64:
        pods = [self.pods_on(row, pod_set) if allowed[row] else 0 for row in range(len(allowed))]
        return np.array(pods, dtype=np.int64)

    def kind(self, row: int) -> tuple[object, ...]:
        """Give what two nodes must share to be as good as each other."""
        masks = int(self.gpu_free[row]), int(self.nic_free[row])
        return int(self.fleet.machine[row]), *masks, tuple(self.free[row]), self.ports[row]


def domain_names(fleet: Fleet, label: str) -> list[str]:
    """Give each node's value of a label; empty for none."""
    return [dict(pairs).get(label, "") for pairs in fleet.labels]


def plain_pack(room: PlainRoom, pod_sets: PodSets, nodes: Masks) -> Places | None:
    """Try preferred levels and then preferred pairs as required; give up pairs first."""
    for sparing, bound, strict in product((True, False), repeat=3):
        allowed = {
            each.name: nodes[each.name]
            & [
                not sparing or each.is_avoid_required or name not in each.avoid
                for name in room.fleet.names
            ]
            for each in pod_sets
        }
        attempt = tuple(
            replace(
                pod_set,
                is_level_required=bound or pod_set.is_level_required,
                is_pair_required=strict or pod_set.is_pair_required,
            )
            for pod_set in pod_sets
        )
        places = _in_domains(room, attempt, allowed)
        if places is not None:
            return places
    return None


def _in_domains(room: PlainRoom, pod_sets: PodSets, nodes: Masks) -> Places | None:
    bound = [each for each in sorted(pod_sets, key=_size, reverse=True) if each.is_level_required]
    labels = sorted({each.level for each in bound if each.level})
    orders = [_domain_order(room, [e for e in bound if e.level == each], nodes) for each in labels]
    for chosen in product(*orders):
        inside = dict(nodes)
        for label, name in zip(labels, chosen, strict=True):
            mine = np.array([each == name for each in domain_names(room.fleet, label)])
            inside |= {e.name: nodes[e.name] & mine for e in bound if e.level == label}
        places = _place(room, pod_sets, inside)
        if places is not None:
            return places
    return None


def _domain_order(room: PlainRoom, pod_sets: list[PodSetRequest], nodes: Masks) -> list[str]:
    """Give the domains, those with least room for the heaviest pod set first, then by name."""
    names = domain_names(room.fleet, pod_sets[0].level)
    room_in = {
        name: tuple(
            int(room.capacity(each, nodes[each.name])[[n == name for n in names]].sum())
            for each in pod_sets
        )
        for name in sorted(set(names) - {""})
    }
    return sorted(room_in, key=lambda name: (room_in[name], name))


def _place(room: PlainRoom, pod_sets: PodSets, nodes: Masks) -> Places | None:
    if any(each.slices for each in pod_sets):
        # Below, because it is written in terms of this file.
        from tests.properties.plain_slicing import place_cut  # noqa: PLC0415

        return place_cut(room, pod_sets, nodes)
    places = fill_all(room, sorted(pod_sets, key=_size, reverse=True), nodes)
    if places is not None:
        return places
    return _search(room, sorted(pod_sets, key=lambda each: (each.count > 1, each.name)), nodes)


def _search(room: PlainRoom, pod_sets: list[PodSetRequest], nodes: Masks) -> Places | None:
    first, *rest = pod_sets
    if not rest or first.count > 1:
        return fill_all(room, pod_sets, nodes)
    before = room.copy()
    for place in _different_places(room, first, nodes):
        room.take(place, first)
        found = _search(room, rest, nodes)
        if found is not None:
            return {first.name: [place], **found}
        room.become(before)
    return None


def _different_places(room: PlainRoom, pod_set: PodSetRequest, nodes: Masks) -> Iterator[PodPlace]:
    kinds: dict[tuple[object, ...], int] = {}
    capacity = room.capacity(pod_set, nodes[pod_set.name])
    for row in sorted(np.flatnonzero(capacity).tolist(), key=lambda row: fullness(room, row)):
        allowed = tuple(bool(mask[row]) for mask in nodes.values())
        kinds.setdefault((*room.kind(row), allowed), row)
    yield from filter(None, (room.choose(row, pod_set, siblings=0) for row in kinds.values()))


def _size(pod_set: PodSetRequest) -> tuple[int, int, str]:
    wanted = dict(pod_set.per_pod)
    return wanted.get(GPU, 0), wanted.get(CPU, 0), pod_set.name


def fill_all(
    room: PlainRoom, pod_sets: list[PodSetRequest], nodes: Masks, placed: Places | None = None
) -> Places | None:
    """Fill one set after the other, beside those that are placed already."""
    before = room.copy()
    places: Places = dict(placed or {})
    for pod_set in sorted(pod_sets, key=_size, reverse=True) if placed else pod_sets:
        used = {place.row for chosen in places.values() for place in chosen}
        mine = places[pod_set.name] = []
        for allowed, most in _shares(room, pod_set, nodes[pod_set.name], used):
            _fill(room, pod_set, allowed, (mine, most, used))
        if len(mine) < pod_set.count:
            room.become(before)
            return None
    return places


def _shares(
    room: PlainRoom, pod_set: PodSetRequest, allowed: Bool, used: set[int]
) -> Iterator[tuple[Bool, int]]:
    """Give the nodes to fill and how many pods each group of them gets at most."""
    if not pod_set.level or pod_set.is_level_required:
        yield allowed, pod_set.count
        return
    names = domain_names(room.fleet, pod_set.level)
    capacity = room.capacity(pod_set, allowed)
    left = {name: int(capacity[[n == name for n in names]].sum()) for name in sorted(set(names))}
    homeless, missing = left.pop("", 0), pod_set.count
    while missing and max(left.values(), default=0):
        enough = min(missing, max(left.values()))
        best = min(
            (name for name in left if left[name] >= enough),
            key=lambda name: (all(names[row] != name for row in used), left[name], name),
        )
        yield allowed & np.array([name == best for name in names]), min(missing, left[best])
        missing -= min(missing, left.pop(best))
    yield allowed & np.array([not name for name in names]), min(missing, homeless)


def _fill(
    room: PlainRoom,
    pod_set: PodSetRequest,
    allowed: Bool,
    so_far: tuple[list[PodPlace], int, set[int]],
) -> None:
    """Take the first node that can take all that is missing, else those that can take most."""
    mine, missing, used = so_far
    capacity = np.minimum(room.capacity(pod_set, allowed), MANY_PODS)
    while missing and capacity.any():
        enough = min(missing, int(capacity.max()))
        row = min(
            np.flatnonzero(capacity >= enough).tolist(),
            key=lambda row: (row not in used, fullness(room, row)),
        )
        for siblings in reversed(range(min(missing, int(capacity[row])))):
            place = room.choose(row, pod_set, siblings)
            assert place is not None
            room.take(place, pod_set)
            mine.append(place)
            missing -= 1
        capacity[row] = 0


def fullness(room: PlainRoom, row: int) -> tuple[int, int, int]:
    resources = room.fleet.resources
    cpu = int(room.free[row, resources.index(CPU)]) if CPU in resources else 0
    return int(room.gpu_free[row]).bit_count(), cpu, row
