"""What is typically asked of one fleet, and how much of its room each placing would spoil for that.

States of nodes are judged, not nodes: what is known of a state is remembered for as long as the
typical requests stay what they are. Chooses no node.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from gateway.core.devices.fleet import Bool, Int64
from gateway.core.jobs.request import PodSetRequest
from gateway.core.placing.attempts import Ask
from gateway.core.placing.fits import PodFits
from gateway.core.placing.fragments import WHOLE_GPU, Mix, Rooms, TypicalPod
from gateway.core.placing.room import Room
from gateway.core.placing.states import NodeState

MOST_TYPICAL = 64
"""Pod sets that are looked at; the rest is too rare to matter."""
UNKNOWN = np.iinfo(np.int64).min


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
        listed = _most_frequent(list(asked))
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
        self._losses: dict[tuple[PodFits, int], Int64] = {}

    def losses(self, room: Room, ask: Ask, rows: Int64) -> Int64:
        """Give by how many steps more is stranded when all pods of a set are put on one of these.

        Nothing is lost where nothing is typical. Each of the nodes must have room for all pods.
        """
        if not self._mix:
            return np.zeros(len(rows), dtype=np.int64)
        keys = room.state_of[rows].astype(np.int64) * self._kinds + self._kind_of[rows]
        known = self._table(ask)
        unknown = np.unique(keys[known[keys] == UNKNOWN])
        if len(unknown):
            known[unknown] = self._judge(ask, unknown)
        losses: Int64 = known[keys]
        return losses

    def _table(self, ask: Ask) -> Int64:
        """Give what is known of a pod set by state and kind, long enough for all states."""
        key, size = (ask.fits, ask.count), len(self._states) * self._kinds
        known = self._losses.get(key)
        if known is None or len(known) < size:
            # Twice as long as needed, for states come one by one.
            longer: Int64 = np.full(2 * size, UNKNOWN, dtype=np.int64)
            if known is not None:
                longer[: len(known)] = known
            known = self._losses[key] = longer
        return known

    def _judge(self, ask: Ask, keys: Int64) -> Int64:
        numbers, kinds = np.divmod(keys, self._kinds)
        before = [self._states.states[number] for number in numbers.tolist()]
        after = [ask.fits.left(state, ask.count)[1] for state in before]
        return self._mix.losses(
            self._mix.stranded(_rooms(before, kinds)), self._mix.stranded(_rooms(after, kinds))
        )

    def _pod(self, asked: Asked, kinds: frozenset[int]) -> TypicalPod:
        shape = self.shapes.fits(asked.pod_set).shape
        # Needs that no node knows are met by none, so the pod has no kind of node to go to.
        kinds = kinds if shape.is_known else frozenset()
        need = (shape.wish.nics, *shape.need)
        return TypicalPod(asked.weight, shape.wish.gpus, WHOLE_GPU, need, kinds)


def _most_frequent(asked: list[Asked]) -> list[Asked]:
    if len(asked) <= MOST_TYPICAL:
        return asked
    # Which of the equally frequent are left out must not depend on the order in which they came.
    return sorted(asked, key=lambda each: (-each.weight, repr(each.pod_set)))[:MOST_TYPICAL]


def _kinds(masks: Sequence[Bool], nodes: int) -> tuple[Int64, Bool]:
    """Give each node's kind, and for each kind whether it is in each of the masks."""
    columns = np.array(masks, dtype=np.bool_).reshape(len(masks), nodes).T
    kinds, kind_of = np.unique(columns, axis=0, return_inverse=True)
    return kind_of.reshape(-1).astype(np.int64), kinds


def _rooms(states: Sequence[NodeState], kinds: Int64) -> Rooms:
    masks = np.array([state.gpu_free for state in states], dtype=np.int64)
    ordinals = np.arange(int(masks.max(initial=0)).bit_length(), dtype=np.int64)
    units: Int64 = (masks[:, None] >> ordinals & 1) * WHOLE_GPU
    free = [(state.nic_free.bit_count(), *state.free) for state in states]
    return Rooms(kinds, units, np.array(free, dtype=np.int64))
