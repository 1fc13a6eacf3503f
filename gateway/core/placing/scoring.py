"""Which of the nodes that could take a whole gang takes it: a choice among single nodes.

In order: least more stranded for typical requests, in steps; best fit; nearest devices; name.
Gangs that need several nodes are none of its business.
"""

import numpy as np

from gateway.core.devices.fleet import Int64
from gateway.core.devices.topology import layout_of, pairing
from gateway.core.placing.attempts import Ask
from gateway.core.placing.levels import NO_DOMAIN
from gateway.core.placing.room import PodPlace, Room
from gateway.core.placing.states import NodeState
from gateway.core.placing.typical import Typical
from gateway.core.resources import CPU


def place_on_one(room: Room, typical: Typical, ask: Ask) -> list[PodPlace] | None:
    """Take room for all pods of a set on the best node; None when no node has room for all."""
    rows = _candidates(room, ask)
    if not len(rows):
        return None
    rows = _least(rows, typical.losses(room, ask, rows))
    rows = _least(rows, _left(room, rows))
    if len(rows) > 1:
        rows = _least(rows, _distances(room, ask, rows))
    # Rows are in the order of names.
    return room.take_pods(int(rows[0]), ask.fits, ask.count)


def _candidates(room: Room, ask: Ask) -> Int64:
    view = room.roomy(ask)
    if view is None:
        return np.zeros(0, dtype=np.int64)
    fitting = view.pods >= ask.count
    if ask.level:
        # One node is in one domain, whichever; nodes without the label are in none.
        fitting &= room.level(ask.level).domain_of != NO_DOMAIN
    return np.flatnonzero(fitting)


def _least(rows: Int64, keys: Int64) -> Int64:
    least: Int64 = rows[keys == keys.min()]
    return least


def _left(room: Room, rows: Int64) -> Int64:
    """Give what each node has free, GPUs and CPU in equal parts of what the largest node has.

    A pod takes as much from each of them, so before tells what after would.
    """
    fleet = room.fleet
    gpus = np.bitwise_count(room.shapes.states.columns().gpu_free[room.state_of[rows]])
    left: Int64 = gpus.astype(np.int64)
    if CPU in fleet.resources:
        column = fleet.resources.index(CPU)
        most_gpus = max(1, int(np.bitwise_count(fleet.gpu_all).max(initial=0)))
        # Whole numbers: both sides times what the other's largest is.
        left = left * max(1, int(fleet.total[:, column].max(initial=0)))
        left += room.shapes.states.columns().free[room.state_of[rows], column] * most_gpus
    return left


def _distances(room: Room, ask: Ask, rows: Int64) -> Int64:
    """Give how far the GPUs and NICs that pods would be given are from each other."""
    states, distance_of = np.unique(room.state_of[rows], return_inverse=True)
    each = [_distance(room, ask, room.shapes.states.states[state]) for state in states.tolist()]
    return np.array(each, dtype=np.int64)[distance_of]


def _distance(room: Room, ask: Ask, state: NodeState) -> int:
    layout = layout_of(room.shapes.states.machines[state.machine])
    masks, _ = ask.fits.left(state, ask.count)
    return sum(pairing(layout, *mask, ask.fits.shape.wish.rule).distance for mask in masks)
