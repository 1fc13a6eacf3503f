"""What is typically asked of one fleet, and how much of its room each placing would spoil for that.

States of nodes are judged, not nodes: what is known of a state is remembered for as long as the
typical requests stay what they are. Chooses no node.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from gateway.core.devices.fleet import Bool, Fleet, Int64
from gateway.core.jobs.request import PodSetRequest
from gateway.core.placing.attempts import Ask
from gateway.core.placing.fits import PodFits
from gateway.core.placing.fragments import WHOLE_GPU, Mix, Rooms, TypicalPod
from gateway.core.placing.room import Room
from gateway.core.placing.states import NodeState
from gateway.core.resources import CPU

MOST_TYPICAL = 64
"""Pod sets that are looked at; the rest is too rare to matter."""
MASKS_AT_ONCE = 32
"""Bits of a number that are used up by masks, beside those that nodes need."""
UNKNOWN, NEVER = np.iinfo(np.int64).min, np.iinfo(np.int64).max
STEP = 1 << 40
"""Above anything that may be left of a node, so that what is stranded decides first."""


class Asked(NamedTuple):
    """A pod set that is asked for these days."""

    pod_set: PodSetRequest
    nodes: Bool
    """Nodes that it may use."""
    weight: int
    """How many of its pods there are."""


class Typical:
    """Typical pod sets on one fleet; compared by identity, for it remembers much."""

    def __init__(self, room: Room, asked: Iterable[Asked]) -> None:
        """Take the most frequent of these; nodes that the same of them may use are of one kind."""
        listed = _most_frequent(asked)
        self.shapes = room.shapes
        """Of the fleet that these are typical for: states mean nothing to another."""
        self._states = room.shapes.states
        self._kind_of, kinds = _kinds([each.nodes for each in listed], len(room.fleet))
        self._kinds = len(kinds)
        self._mix = Mix(
            (
                self._pod(each, frozenset(np.flatnonzero(kinds[:, column]).tolist()))
                for column, each in enumerate(listed)
            ),
            self._kinds,
        )
        self.together = _together(room, listed)
        """Typical pods that want to share a domain, the most frequent for each node label."""
        self.largest = largest_of(room.fleet)
        """The scale of what is left; a fleet with larger nodes has another."""
        self._cpu = self._states.resources.index(CPU) if CPU in self._states.resources else None
        self._tables: dict[tuple[PodFits, int], Int64] = {}

    def __bool__(self) -> bool:
        """Whether anybody typical asks for GPUs; else there is nothing to be spared."""
        return bool(self._mix)

    def best(self, room: Room, ask: Ask, fitting: Bool) -> Int64:
        """Give the nodes that are best for all pods of a set, of those that have room for them.

        Best is where least more is stranded, in steps, and then where least is left. At least one
        node must fit, and somebody typical must ask for GPUs.
        """
        numbers = room.state_of.astype(np.int64)
        if self._kinds > 1:
            numbers = numbers * self._kinds + self._kind_of
        table = self._table(ask)
        keys = np.where(fitting, table[numbers], NEVER)
        least = keys.min()
        # What is unknown is less than anything known, so one look at the least tells.
        if least == UNKNOWN:
            unknown = np.unique(numbers[keys == UNKNOWN])
            table[unknown] = self._judge(ask, unknown)
            keys = np.where(fitting, table[numbers], NEVER)
            least = keys.min()
        return np.flatnonzero(keys == least)

    def _table(self, ask: Ask) -> Int64:
        """Give what is known of a pod set by state and kind, long enough for all states."""
        key, size = (ask.fits, ask.count), len(self._states) * self._kinds
        known = self._tables.get(key)
        if known is None or len(known) < size:
            # Twice as long as needed, for states come one by one.
            longer: Int64 = np.full(2 * size, UNKNOWN, dtype=np.int64)
            if known is not None:
                longer[: len(known)] = known
            known = self._tables[key] = longer
        return known

    def _judge(self, ask: Ask, numbers: Int64) -> Int64:
        states, kinds = np.divmod(numbers, self._kinds)
        before = [self._states.states[number] for number in states.tolist()]
        after = [ask.fits.left(state, ask.count)[1] for state in before]
        losses = self._mix.losses(
            self._mix.stranded(_rooms(before, kinds)), self._mix.stranded(_rooms(after, kinds))
        )
        left = np.array([self._left(state) for state in after], dtype=np.int64)
        keys: Int64 = losses * STEP + left
        return keys

    def _left(self, state: NodeState) -> int:
        """Give what is free, GPUs and CPU in equal parts of what the largest node has of each."""
        cpu = 0 if self._cpu is None else state.free[self._cpu]
        # In whole numbers: each times what the other's largest is.
        return state.gpu_free.bit_count() * self.largest[1] + cpu * self.largest[0]

    def _pod(self, asked: Asked, kinds: frozenset[int]) -> TypicalPod:
        shape = self.shapes.fits(asked.pod_set).shape
        # Needs that no node knows are met by none, so the pod has no kind of node to go to.
        kinds = kinds if shape.is_known else frozenset()
        need = (shape.wish.nics, *shape.need)
        return TypicalPod(asked.weight, shape.wish.gpus, WHOLE_GPU, need, kinds)


def largest_of(fleet: Fleet) -> tuple[int, int]:
    """Give the most GPUs and the most CPU of any node, at least 1 each."""
    column = fleet.resources.index(CPU) if CPU in fleet.resources else None
    cpu = 0 if column is None else int(fleet.total[:, column].max(initial=0))
    return max(1, int(np.bitwise_count(fleet.gpu_all).max(initial=0))), max(1, cpu)


def _most_frequent(asked: Iterable[Asked]) -> list[Asked]:
    # By words in the end: nothing may depend on the order in which equally frequent ones came.
    return sorted(asked, key=lambda each: (-each.weight, repr(each.pod_set)))[:MOST_TYPICAL]


def _together(room: Room, asked: list[Asked]) -> tuple[Ask, ...]:
    levelled = [each for each in asked if each.pod_set.count > 1 and each.pod_set.level]
    # The most frequent come first, and are written last.
    found = {each.pod_set.level: each for each in reversed(levelled)}
    return tuple(_levelled(room, found[label]) for label in sorted(found))


def _levelled(room: Room, asked: Asked) -> Ask:
    return Ask(
        name=asked.pod_set.name,
        count=asked.pod_set.count,
        fits=room.shapes.fits(asked.pod_set),
        allowed=asked.nodes,
        level=asked.pod_set.level,
        spread="",
    )


def _kinds(masks: Sequence[Bool], nodes: int) -> tuple[Int64, Bool]:
    """Give each node's kind, and for each kind whether it is in each of the masks."""
    codes = np.zeros(nodes, dtype=np.int64)
    # Most pods may use the same nodes, and have the very same mask then.
    for count, mask in enumerate({id(mask): mask for mask in masks}.values(), start=1):
        codes = 2 * codes + mask
        if count % MASKS_AT_ONCE == 0:
            # Small numbers again, before they would not fit any more.
            codes = np.unique(codes, return_inverse=True)[1]
    _, firsts, kind_of = np.unique(codes, return_index=True, return_inverse=True)
    kinds = np.array([mask[firsts] for mask in masks], dtype=np.bool_)
    return kind_of.astype(np.int64), kinds.reshape(len(masks), len(firsts)).T


def _rooms(states: Sequence[NodeState], kinds: Int64) -> Rooms:
    masks = np.array([state.gpu_free for state in states], dtype=np.int64)
    ordinals = np.arange(int(masks.max(initial=0)).bit_length(), dtype=np.int64)
    units: Int64 = (masks[:, None] >> ordinals & 1) * WHOLE_GPU
    free = [(state.nic_free.bit_count(), *state.free) for state in states]
    return Rooms(kinds, units, np.array(free, dtype=np.int64))
