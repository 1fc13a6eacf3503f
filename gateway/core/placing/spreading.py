"""Spreading the pods of one set over many nodes, the emptiest first.

For fleets where losing a node should cost a gang little. Exact for one set, like filling.
"""

import numpy as np

from gateway.core.devices.fleet import Int64
from gateway.core.placing.attempts import Ask
from gateway.core.placing.room import PodPlace, Room


def spread_out(room: Room, ask: Ask) -> list[PodPlace] | None:
    """Take room for all pods of a set; None, and nothing taken, when there is too little."""
    view = room.roomy(ask)
    if view is None:
        return None
    rows = _emptiest(room, np.flatnonzero(view.pods), ask.count)
    room_for = np.minimum(view.pods[rows].astype(np.int64), ask.count)
    # One more on each node that has room for it, until the next round would be too many.
    rounds = int(np.searchsorted(_by_rounds(room_for), ask.count, side="right"))
    shares = np.minimum(room_for, rounds)
    missing = ask.count - int(shares.sum())
    shares[np.flatnonzero(room_for > rounds)[:missing]] += 1
    found: list[PodPlace] = []
    for row, share in zip(rows.tolist(), shares.tolist(), strict=True):
        # Nodes come emptiest first, so the rest of them may have to take none.
        found += room.take_pods(row, ask.fits, share) if share else []
    return found


def _emptiest(room: Room, rows: Int64, pods: int) -> Int64:
    """Give nodes, emptiest first and then by name, no more of them than there are pods."""
    order = -room.fullness[rows]
    if len(rows) > pods:
        # Thousands of nodes for a few pods are not worth sorting, nor thousands of equal ones.
        last = np.partition(order, pods - 1)[pods - 1] if pods > 1 else order.min()
        (emptier,), (equal,) = (order < last).nonzero(), (order == last).nonzero()
        chosen = np.append(emptier, equal[: pods - len(emptier)])
        rows, order = rows[chosen], order[chosen]
    emptiest: Int64 = rows[np.argsort(order, kind="stable")]
    return emptiest


def _by_rounds(room_for: np.ndarray) -> np.ndarray:
    """Give how many pods are placed after one round, after two, and so on."""
    return np.cumsum((room_for[:, None] > np.arange(int(room_for.max()))).sum(axis=0))
