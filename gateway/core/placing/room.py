"""What is still free during a trial: private copies of the fleet's columns, changed in place.

A trial takes room pod by pod; a failed one is thrown away by going back to a mark.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from gateway.core.devices.fleet import Bool, Fleet, Int64
from gateway.core.devices.selection import MANY_PODS, DeviceWish, choose_devices, pods_on
from gateway.core.jobs.request import PodSetRequest, RequestClass
from gateway.core.resources import GPU, PODS, RDMA
from gateway.core.vocabulary import PairRule

Known = dict[DeviceWish, dict[tuple[int, int, int], int]]
"""How many pods fit a node in a state (machine, free GPUs, free NICs), by wish."""


@dataclass(frozen=True, slots=True)
class PodPlace:
    """One pod's node (row) and devices."""

    row: int
    gpu_mask: int
    nic_mask: int


class Room:
    """Free amounts and device masks; rows are nodes in the order of the fleet."""

    def __init__(self, fleet: Fleet, known: Known | None = None) -> None:
        """Start from the fleet's free state; `known` are answers of another room of this fleet."""
        self.fleet = fleet
        self.free = fleet.free.copy()
        self.gpu_free = fleet.gpu_free.copy()
        self.nic_free = fleet.nic_free.copy()
        self.is_available: Bool = fleet.is_available.copy()
        self.ports: dict[int, set[int]] = {}
        self._taken: list[tuple[PodPlace, Int64, tuple[int, ...]]] = []
        self._known: Known = {} if known is None else known

    def afresh(self) -> "Room":
        """Give another room in the fleet's own state, that shares what is known of its machines."""
        return Room(self.fleet, self._known)

    def empty(self, rows: Iterable[int]) -> "Room":
        """Treat everything on these nodes as free."""
        chosen = list(rows)
        self.free[chosen] = self.fleet.total[chosen]
        self.gpu_free[chosen] = self.fleet.gpu_all[chosen]
        self.nic_free[chosen] = self.fleet.nic_all[chosen]
        return self

    def heal(self, rows: Iterable[int]) -> "Room":
        """Treat these nodes as available."""
        self.is_available[list(rows)] = True
        return self

    def mark(self) -> int:
        """Give a mark to go back to."""
        return len(self._taken)

    def back_to(self, mark: int) -> None:
        """Give back everything taken since the mark."""
        while len(self._taken) > mark:
            place, need, ports = self._taken.pop()
            self.free[place.row] += need
            self.gpu_free[place.row] |= place.gpu_mask
            self.nic_free[place.row] |= place.nic_mask
            if ports:
                self.ports[place.row].difference_update(ports)

    def take(self, place: PodPlace, pod_set: PodSetRequest) -> None:
        """Take one pod's amounts and devices."""
        need = self.need(pod_set)
        self.free[place.row] -= need
        self.gpu_free[place.row] &= ~np.int64(place.gpu_mask)
        self.nic_free[place.row] &= ~np.int64(place.nic_mask)
        if pod_set.host_ports:
            self.ports.setdefault(place.row, set()).update(pod_set.host_ports)
        self._taken.append((place, need, pod_set.host_ports))

    def need(self, pod_set: PodSetRequest) -> Int64:
        """Give one pod's need in the fleet's resource columns."""
        wanted = {**dict(pod_set.per_pod), PODS: 1}
        return np.array([wanted.get(name, 0) for name in self.fleet.resources], dtype=np.int64)

    def capacity(self, pod_set: PodSetRequest, allowed: Bool) -> Int64:
        """Give how many pods of the set each node could take now, at most the whole set."""
        pods = np.where(allowed & self.is_available, pod_set.count, 0).astype(np.int64)
        if unknown_resources(self.fleet, pod_set):
            return np.zeros_like(pods)
        need = self.need(pod_set)
        asked = need > 0
        if asked.any():
            # Foreign use may leave less than nothing.
            free = np.maximum(self.free[:, asked], 0)
            pods = np.minimum(pods, (free // need[asked]).min(axis=1))
        self._limit_by_ports(pods, pod_set)
        self._limit_by_devices(pods, pod_set)
        return pods

    def take_many(self, row: int, pod_set: PodSetRequest, count: int) -> list[PodPlace]:
        """Take up to that many pods of a set on one node; each leaves enough for the next."""
        places: list[PodPlace] = []
        while len(places) < count and (
            place := self.choose(row, pod_set, siblings=count - len(places) - 1)
        ):
            self.take(place, pod_set)
            places.append(place)
        return places

    def choose(self, row: int, pod_set: PodSetRequest, siblings: int) -> PodPlace | None:
        """Give the best devices for one pod that leave enough for its siblings on this node."""
        wish = wish_of(pod_set)._replace(siblings=siblings)
        machine = self.fleet.machines[self.fleet.machine[row]]
        choice = choose_devices(machine, int(self.gpu_free[row]), int(self.nic_free[row]), wish)
        return PodPlace(row, choice.gpu_mask, choice.nic_mask) if choice else None

    def free_of(self, resource: str) -> Int64:
        """Give what each node has free of one resource; nothing where nobody has it."""
        if resource in self.fleet.resources:
            return self.free[:, self.fleet.resources.index(resource)]
        mask = {GPU: self.gpu_free, RDMA: self.nic_free}.get(resource)
        count = np.zeros(len(self.fleet)) if mask is None else np.bitwise_count(mask)
        return count.astype(np.int64)

    def free_sums(self, usable: Bool) -> dict[str, int]:
        """Give what these nodes have free together; pods without end where nobody counts them."""
        amounts = zip(self.fleet.resources, self.free[usable].sum(axis=0).tolist(), strict=True)
        return {
            PODS: MANY_PODS,
            **dict(amounts),
            GPU: int(np.bitwise_count(self.gpu_free[usable]).sum()),
            RDMA: int(np.bitwise_count(self.nic_free[usable]).sum()),
        }

    def state(self, row: int) -> tuple[object, ...]:
        """Give what two nodes must share to be as good as each other for any pod."""
        return (
            int(self.fleet.machine[row]),
            int(self.gpu_free[row]),
            int(self.nic_free[row]),
            self.free[row].tobytes(),
            frozenset(self.ports.get(row, ())),
        )

    def _limit_by_ports(self, pods: Int64, pod_set: PodSetRequest) -> None:
        if not pod_set.host_ports:
            return
        np.minimum(pods, 1, out=pods)
        for row, taken in self.ports.items():
            if taken.intersection(pod_set.host_ports):
                pods[row] = 0

    def _limit_by_devices(self, pods: Int64, pod_set: PodSetRequest) -> None:
        wish = wish_of(pod_set)
        for free, wanted in ((self.gpu_free, wish.gpus), (self.nic_free, wish.nics)):
            if wanted:
                np.minimum(pods, np.bitwise_count(free) // wanted, out=pods)
        if wish.is_near:
            self._limit_by_nearness(pods, wish)

    def _limit_by_nearness(self, pods: Int64, wish: DeviceWish) -> None:
        # Nodes in the same state give the same answer, and there are few states.
        known = self._known.setdefault(wish, {})
        rows = np.flatnonzero(pods)
        columns = (self.fleet.machine, self.gpu_free, self.nic_free)
        states = list(zip(*(column[rows].tolist() for column in columns), strict=True))
        for state in set(states) - set(known):
            known[state] = pods_on(self.fleet.machines[state[0]], *state[1:], wish)
        pods[rows] = np.minimum(pods[rows], [known[state] for state in states])


def unknown_resources(fleet: Fleet, pod_set: PodSetRequest) -> tuple[str, ...]:
    """Give the resources that no node of the fleet has."""
    known = {*fleet.resources, GPU, RDMA}
    return tuple(name for name, _ in pod_set.per_pod if name not in known)


def wish_of(pod_set: PodSetRequest) -> DeviceWish:
    """Give what one pod wants of a node's devices."""
    wanted = dict(pod_set.per_pod)
    return DeviceWish(
        wanted.get(GPU, 0), wanted.get(RDMA, 0), pod_set.pair, pod_set.is_pair_required
    )


def with_rule(request: RequestClass, rule: PairRule) -> RequestClass:
    """Give the same gang under one pair rule for all its pods."""
    return RequestClass(pod_sets=tuple(replace(each, pair=rule) for each in request.pod_sets))
