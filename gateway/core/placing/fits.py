"""How many pods of one shape fit a node in each state, and what is left when they are taken.

Exact, and worked out once for a state. The number of pods is not limited by how many are asked for.
"""

from operator import sub
from typing import NamedTuple

import numpy as np

from gateway.core.devices.fleet import Int32, Int64
from gateway.core.devices.selection import (
    MANY_PODS,
    Choice,
    DeviceWish,
    choose_devices,
    pods_on,
)
from gateway.core.placing.states import NodeState, NodeStates

FIRST_SIZE = 64
Devices = tuple[int, int, int]
"""A machine type with its free GPUs and NICs."""


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
        # Only what is asked for at all: division by nothing would not end well.
        (self._asked,) = wanted.nonzero()
        self._amounts: Int64 = wanted[self._asked]
        self._pairs = list(zip(self._asked.tolist(), self._amounts.tolist(), strict=True))
        self._is_special = bool(shape.ports) or shape.wish.is_picky
        self._most = MANY_PODS if shape.is_known else 0
        self._pods: Int32 = np.zeros(FIRST_SIZE, dtype=np.int32)
        self._known = 0
        # Many states have the same devices free and differ in the rest.
        self._near: dict[Devices, int] = {}
        self._choices: dict[tuple[int, int, int, int], Choice | None] = {}
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
            tuple(map(sub, state.free, self.shape.need)),
        )

    def left(self, state: NodeState, count: int) -> tuple[tuple[tuple[int, int], ...], NodeState]:
        """Give the devices of up to that many pods, and the state after them without a number."""
        masks: list[tuple[int, int]] = []
        # Told how many come after it, so that the first pod does not take the last near pair.
        for siblings in reversed(range(count)):
            choice = self._choose((state.machine, state.gpu_free, state.nic_free), siblings)
            if choice is None:
                break
            masks.append((choice.gpu_mask, choice.nic_mask))
            state = self.less(state, choice.gpu_mask, choice.nic_mask)
        return tuple(masks), state

    def _take(self, state: NodeState, count: int) -> Taken:
        masks, after = self.left(state, count)
        return Taken(masks, self.states.number_of(after))

    def _choose(self, free: Devices, siblings: int) -> Choice | None:
        key = (*free, siblings)
        if key not in self._choices:
            wish = self.shape.wish._replace(siblings=siblings)
            machine = self.states.machines[free[0]]
            self._choices[key] = choose_devices(machine, *free[1:], wish)
        return self._choices[key]

    def _count_new(self, count: int) -> None:
        if count > len(self._pods):
            larger = np.zeros(2 * count, dtype=np.int32)
            larger[: self._known] = self._pods[: self._known]
            self._pods = larger
        if count == self._known + 1:
            self._pods[self._known] = self._count_one(self.states.states[self._known])
        else:
            self._pods[self._known : count] = self._count_many(self._known)
        self._known = count

    def _count_many(self, first: int) -> Int64:
        counts = self.states.counts(first)[:, self._asked]
        # `initial` is the answer for who asks for nothing, and 0 for what no node has at all.
        pods: Int64 = (counts // self._amounts).min(axis=1, initial=self._most)
        if self._is_special:
            for index in pods.nonzero()[0].tolist():
                pods[index] = self._limited(self.states.states[first + index], int(pods[index]))
        return pods

    def _count_one(self, state: NodeState) -> int:
        """Give the same for one state without the cost of arrays."""
        counts = (state.gpu_free.bit_count(), state.nic_free.bit_count(), *state.free)
        pods = self._most
        for column, amount in self._pairs:
            pods = min(pods, counts[column] // amount)
        # Foreign use may leave less than nothing.
        pods = max(pods, 0)
        return self._limited(state, pods) if self._is_special and pods else pods

    def _limited(self, state: NodeState, pods: int) -> int:
        """Give how many are left when host ports and the nearness of devices count too."""
        if self.shape.ports:
            # Two pods of one shape would ask for the same host port: one a node at most.
            pods = 0 if state.ports & self.shape.ports else 1
        if not self.shape.wish.is_picky:
            return pods
        key = (state.machine, state.gpu_free, state.nic_free)
        if key not in self._near:
            self._near[key] = pods_on(self.states.machines[key[0]], *key[1:], self.shape.wish)
        return min(pods, self._near[key])
