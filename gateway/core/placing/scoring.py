"""Which of the nodes that could take a whole gang takes it: a choice among single nodes.

In order: least more stranded for typical requests, in steps; best fit; nearest devices; a domain
with little room; name.
Gangs that need several nodes are none of its business.
"""

import numpy as np

from gateway.core.devices.fleet import Bool, Int64
from gateway.core.devices.topology import layout_of, pairing
from gateway.core.placing.attempts import Ask
from gateway.core.placing.levels import NO_DOMAIN
from gateway.core.placing.room import PodPlace, Room
from gateway.core.placing.states import NodeState
from gateway.core.placing.typical import Typical


def place_on_one(room: Room, typical: Typical, ask: Ask) -> list[PodPlace] | None:
    """Take room for all pods of a set on the best node; None when no node has room for all."""
    fitting = _fitting(room, ask)
    if fitting is None or not fitting.any():
        return None
    rows = typical.best(room, ask, fitting)
    if len(rows) > 1:
        rows = _nearest(room, ask, rows)
        for each in typical.together:
            # Large gangs look for domains with much room, so what is left of others goes first.
            rows = _least(rows, _room_around(room, each, rows))
    # Rows are in the order of names.
    return room.take_pods(int(rows[0]), ask.fits, ask.count)


def _fitting(room: Room, ask: Ask) -> Bool | None:
    view = room.roomy(ask)
    if view is None:
        return None
    fitting = view.pods >= ask.count
    if ask.level:
        # One node is in one domain, whichever; nodes without the label are in none.
        fitting &= room.level(ask.level).domain_of != NO_DOMAIN
    return fitting


def _least(rows: Int64, keys: Int64) -> Int64:
    least: Int64 = rows[keys == keys.min()]
    return least


def _room_around(room: Room, ask: Ask, rows: Int64) -> Int64:
    """Give how many typical pods each node's domain has room for; none where it is in none."""
    around = room.view(ask).by_domain.copy()
    around[NO_DOMAIN] = 0
    return around[room.level(ask.level).domain_of[rows]]


def _nearest(room: Room, ask: Ask, rows: Int64) -> Int64:
    """Give those nodes on which GPUs and NICs would be nearest to each other."""
    wish = ask.fits.shape.wish
    if not wish.gpus or not wish.nics:
        return rows
    states, state_of = np.unique(room.state_of[rows], return_inverse=True)
    each = [_distance(room, ask, room.shapes.states.states[state]) for state in states.tolist()]
    return _least(rows, np.array(each, dtype=np.int64)[state_of])


def _distance(room: Room, ask: Ask, state: NodeState) -> int:
    layout = layout_of(room.shapes.states.machines[state.machine])
    masks, _ = ask.fits.left(state, ask.count)
    return sum(pairing(layout, *mask, ask.fits.shape.wish.rule).distance for mask in masks)
