"""States of nodes, each kept once: two nodes in one state are as good as each other for any pod.

A state is a small number everywhere else. States are only added, so what is known of one (how many
pods of a shape fit, what is left after taking them) stays true for as long as the table lives.
"""

from collections.abc import Iterable
from itertools import repeat
from typing import NamedTuple

import numpy as np

from gateway.core.devices.fleet import Fleet, Int32, Int64, MachineType
from gateway.core.resources import CPU

FIRST_SIZE = 64
NO_PORTS: frozenset[int] = frozenset()
FULLNESS_OF_GPU = 2**53
"""Weight of one free GPU in the order of nodes; no node has as many thousandths of a core."""


class NodeState(NamedTuple):
    """All of a node that decides what fits on it, but for its labels and its health."""

    machine: int
    gpu_free: int
    nic_free: int
    ports: frozenset[int]
    """Host ports that are taken."""
    free: tuple[int, ...]
    """In the fleet's resource columns."""


class StateColumns(NamedTuple):
    """States as columns, in order of number."""

    gpu_free: Int64
    nic_free: Int64
    free: Int64


class NodeStates:
    """The states that were seen, by number."""

    def __init__(self, machines: tuple[MachineType, ...], resources: tuple[str, ...]) -> None:
        """Start empty for these machine types and resource columns."""
        self.machines = machines
        self.resources = resources
        self.states: list[NodeState] = []
        self.fullness: list[int] = []
        """By state: the smaller, the less is free; GPUs count first, then CPU."""
        self._cpu = resources.index(CPU) if CPU in resources else None
        self._number_of: dict[NodeState, int] = {}
        self._table: Int64 = np.zeros((FIRST_SIZE, 2 + len(resources)), dtype=np.int64)
        self._counts: Int64 = np.zeros((FIRST_SIZE, 2 + len(resources)), dtype=np.int64)
        self._filled = 0

    def __len__(self) -> int:
        """Number of states."""
        return len(self.states)

    def number_of(self, state: NodeState) -> int:
        """Give a state's number; a new one if it was never seen."""
        number = self._number_of.get(state)
        if number is None:
            number = self._number_of[state] = len(self.states)
            self.states.append(state)
            # A GPU more makes a node emptier whatever CPU is left: GPUs are what gangs wait for.
            cpu = 0 if self._cpu is None else state.free[self._cpu]
            self.fullness.append(state.gpu_free.bit_count() * FULLNESS_OF_GPU + cpu)
        return number

    def numbers_of(self, states: Iterable[NodeState]) -> Int32:
        """Give the numbers of many states."""
        return np.fromiter(map(self.number_of, states), dtype=np.int32)

    def columns(self) -> StateColumns:
        """Give all states as columns."""
        self._fill()
        rows = self._table[: self._filled]
        return StateColumns(rows[:, 0], rows[:, 1], rows[:, 2:])

    def counts(self, first: int) -> Int64:
        """Give what states from this number on have of GPUs, NICs and each resource, at least 0."""
        self._fill()
        return self._counts[first : self._filled]

    def _fill(self) -> None:
        """Write the rows of new states; many at once cost little more than one."""
        count = len(self.states)
        if count == self._filled:
            return
        if count > len(self._table):
            self._table = _longer(self._table, 2 * count)
            self._counts = _longer(self._counts, 2 * count)
        new = slice(self._filled, count)
        self._table[new] = [
            (state.gpu_free, state.nic_free, *state.free) for state in self.states[new]
        ]
        # Counts instead of masks: how many are free decides most fits, which ones only few.
        self._counts[new, :2] = np.bitwise_count(self._table[new, :2])
        # Foreign use may leave less than nothing.
        self._counts[new, 2:] = np.maximum(self._table[new, 2:], 0)
        self._filled = count


def _longer(table: Int64, count: int) -> Int64:
    longer = np.zeros((count, table.shape[1]), dtype=np.int64)
    longer[: len(table)] = table
    return longer


def present_states(fleet: Fleet, rows: Int64) -> Iterable[NodeState]:
    """Give the states that these nodes are in now."""
    return _states(fleet, rows, (fleet.gpu_free, fleet.nic_free, fleet.free))


def idle_states(fleet: Fleet, rows: Int64) -> Iterable[NodeState]:
    """Give the states that these nodes would be in with nothing on them."""
    return _states(fleet, rows, (fleet.gpu_all, fleet.nic_all, fleet.total))


def _states(fleet: Fleet, rows: Int64, free: tuple[Int64, Int64, Int64]) -> Iterable[NodeState]:
    gpus, nics, amounts = free
    return map(
        NodeState,
        fleet.machine[rows].tolist(),
        gpus[rows].tolist(),
        nics[rows].tolist(),
        repeat(NO_PORTS),
        map(tuple, amounts[rows].tolist()),
    )
