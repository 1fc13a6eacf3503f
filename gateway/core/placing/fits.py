"""How many pods of one shape fit a node in each state, and what is left when they are taken.

Exact, and worked out once for a state. The number of pods is not limited by how many are asked for.
"""

from typing import NamedTuple

import numpy as np

from gateway.core.devices.fleet import Int32, Int64
from gateway.core.devices.selection import MANY_PODS, DeviceWish, choose_devices, pods_on
from gateway.core.placing.states import NodeState, NodeStates, StateColumns

FIRST_SIZE = 64


class PodShape(NamedTuple):
    """What one pod needs of a node, in the columns of the node states."""

    need: tuple[int, ...]
    wish: DeviceWish
    ports: frozenset[int]
    is_known: bool
    """False when it needs a resource that no node of the fleet has."""


class Taken(NamedTuple):
    """Devices of pods taken on one node, in order, and the node's state afterwards."""

    masks: tuple[tuple[int, int], ...]
    state: int


class PodFits:
    """What is known about one shape; compared by identity, for each shape has one."""

    def __init__(self, states: NodeStates, shape: PodShape) -> None:
        """Start knowing nothing."""
        self.states = states
        self.shape = shape
        wanted = np.array((shape.wish.gpus, shape.wish.nics, *shape.need), dtype=np.int64)
        (self._asked,) = wanted.nonzero()
        self._amounts: Int64 = wanted[self._asked]
        self._most = MANY_PODS if shape.is_known else 0
        self._pods: Int32 = np.zeros(FIRST_SIZE, dtype=np.int32)
        self._known = 0
        self._near: dict[tuple[int, int, int], int] = {}
        self._taken: dict[tuple[int, int], Taken] = {}

    def pods(self) -> Int32:
        """Give how many pods fit, by state, for all states there are."""
        count = len(self.states)
        if self._known < count:
            self._count_new(count)
        return self._pods[:count]

    def taking(self, state: int, count: int) -> Taken:
        """Give what up to that many pods take of a node; each leaves enough for the next."""
        key = (state, count)
        taken = self._taken.get(key)
        if taken is None:
            taken = self._taken[key] = self._take(self.states.states[state], count)
        return taken

    def less(self, state: NodeState, gpu_mask: int, nic_mask: int) -> NodeState:
        """Give the state after a pod took these devices."""
        return NodeState(
            state.machine,
            state.gpu_free & ~gpu_mask,
            state.nic_free & ~nic_mask,
            state.ports | self.shape.ports,
            tuple(free - need for free, need in zip(state.free, self.shape.need, strict=True)),
        )

    def _take(self, state: NodeState, count: int) -> Taken:
        masks: list[tuple[int, int]] = []
        machine = self.states.machines[state.machine]
        for siblings in reversed(range(count)):
            wish = self.shape.wish._replace(siblings=siblings)
            choice = choose_devices(machine, state.gpu_free, state.nic_free, wish)
            if choice is None:
                break
            masks.append((choice.gpu_mask, choice.nic_mask))
            state = self.less(state, choice.gpu_mask, choice.nic_mask)
        return Taken(tuple(masks), self.states.number_of(state))

    def _count_new(self, count: int) -> None:
        if count > len(self._pods):
            larger = np.zeros(max(count, 2 * len(self._pods)), dtype=np.int32)
            larger[: self._known] = self._pods[: self._known]
            self._pods = larger
        counts = self.states.counts(self._known)[:, self._asked]
        pods = (counts // self._amounts).min(axis=1, initial=self._most)
        if self.shape.ports:
            self._limit_by_ports(pods)
        if self.shape.wish.is_near:
            self._limit_by_nearness(pods, self.states.columns(self._known))
        self._pods[self._known : count] = pods
        self._known = count

    def _limit_by_ports(self, pods: Int64) -> None:
        np.minimum(pods, 1, out=pods)
        for index in np.flatnonzero(pods).tolist():
            if self.states.states[self._known + index].ports & self.shape.ports:
                pods[index] = 0

    def _limit_by_nearness(self, pods: Int64, columns: StateColumns) -> None:
        # Many states differ in what does not matter here.
        for index in np.flatnonzero(pods).tolist():
            place = int(columns.machine[index]), int(columns.gpu_free[index])
            key = (*place, int(columns.nic_free[index]))
            if key not in self._near:
                machine = self.states.machines[key[0]]
                self._near[key] = pods_on(machine, key[1], key[2], self.shape.wish)
            pods[index] = min(int(pods[index]), self._near[key])
