"""What is still free during a trial: private copies of the fleet's columns, changed in place.

A trial takes room pod by pod; a failed one is thrown away by going back to a mark.
"""

from dataclasses import dataclass

import numpy as np

from gateway.core.devices.fleet import Bool, Fleet, Int64
from gateway.core.jobs.request import PodSetRequest
from gateway.core.resources import GPU, PODS, RDMA
from gateway.core.vocabulary import PairRule


@dataclass(frozen=True, slots=True)
class PodPlace:
    """One pod's node (row) and devices."""

    row: int
    gpu_mask: int
    nic_mask: int


class Room:
    """Free amounts and device masks; rows are nodes in the order of the fleet."""

    def __init__(self, fleet: Fleet) -> None:
        """Start from the fleet's free state."""
        self.fleet = fleet
        self.free = fleet.free.copy()
        self.gpu_free = fleet.gpu_free.copy()
        self.nic_free = fleet.nic_free.copy()
        self.is_available: Bool = fleet.is_available
        self.ports: dict[int, set[int]] = {}
        self._taken: list[tuple[PodPlace, Int64, tuple[int, ...]]] = []

    @classmethod
    def emptied(cls, fleet: Fleet) -> "Room":
        """Give the room of an idle fleet whose nodes are all healthy: what could ever be."""
        room = cls(fleet)
        room.free = fleet.total.copy()
        room.gpu_free = fleet.gpu_all.copy()
        room.nic_free = fleet.nic_all.copy()
        return room.healed()

    def healed(self) -> "Room":
        """Treat every node as available."""
        self.is_available = np.ones(len(self.fleet), dtype=np.bool_)
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

    def fits_amounts(self, pod_set: PodSetRequest) -> Bool:
        """Whether each node has room for one pod, devices counted but not paired."""
        wanted = dict(pod_set.per_pod)
        unknown = set(wanted) - set(self.fleet.resources) - {GPU, RDMA}
        if unknown:
            return np.zeros(len(self.fleet), dtype=np.bool_)
        fits = np.asarray((self.free >= self.need(pod_set)).all(axis=1), dtype=np.bool_)
        fits &= np.bitwise_count(self.gpu_free) >= wanted.get(GPU, 0)
        fits &= np.bitwise_count(self.nic_free) >= wanted.get(RDMA, 0)
        for row, taken in self.ports.items():
            if taken.intersection(pod_set.host_ports):
                fits[row] = False
        return fits


def without_pairs(pod_set: PodSetRequest, rule: PairRule = PairRule.NONE) -> PodSetRequest:
    """Give the same pod set under a looser pair rule."""
    return PodSetRequest(
        name=pod_set.name,
        count=pod_set.count,
        per_pod=pod_set.per_pod,
        node_selector=pod_set.node_selector,
        affinity=pod_set.affinity,
        tolerations=pod_set.tolerations,
        pair=rule,
        is_pair_required=pod_set.is_pair_required,
        host_ports=pod_set.host_ports,
    )
