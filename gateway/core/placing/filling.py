"""Filling nodes with the pods of one set: few nodes, and of those the fullest.

Greedy and exact for one set: what is counted on a node can be taken there, whatever is taken on
others. Nodes that the gang uses already come first, then those with least left, then by name.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet

import numpy as np

from gateway.core.devices.fleet import Int32, Int64
from gateway.core.placing.attempts import Ask
from gateway.core.placing.levels import NO_DOMAIN, Level
from gateway.core.placing.room import PodPlace, Room
from gateway.core.placing.views import View

GangPlaces = dict[str, list[PodPlace]]
"""Places by pod set name, in order of pod index."""
Area = Mapping[str, Int64]
"""The nodes of the chosen domain, by required level."""
Ours = AbstractSet[int]
OURS = 1 << 61
"""Makes a node that the gang uses come before all others; fullness stays far below it."""
NEVER = np.iinfo(np.int64).max
FEW = 4
"""More nodes than so many times those wanted are not worth sorting whole."""


def fill(room: Room, ask: Ask, rows: Int64 | None, used: Ours) -> list[PodPlace] | None:
    """Take room for a whole pod set; None when there is too little, and some may be taken then.

    Args:
        room: what is free.
        ask: the pod set.
        rows: the only nodes to use, in order; None for all.
        used: nodes that the gang uses already.
    """
    return fill_view(room, room.view(ask), ask, (rows, used))


def fill_view(
    room: Room, view: View, ask: Ask, places: tuple[Int64 | None, Ours]
) -> list[PodPlace] | None:
    """Do the same where the pod set's view is at hand."""
    if ask.spread:
        chosen = list(_spread(room, (view, room.level(ask.spread)), places[1], ask.count))
    else:
        chosen = _nodes(room, view, places, ask.count)
    found: list[PodPlace] = []
    for row, count in chosen:
        found += room.take_pods(row, ask.fits, count)
    return found if len(found) == ask.count else None


def fill_all(
    room: Room, asks: Sequence[Ask], area: Area, used: Iterable[int] = ()
) -> GangPlaces | None:
    """Take room for one set after the other; for none of them when one finds too little."""
    mark = room.mark()
    places: GangPlaces = {}
    ours = set(used)
    for ask in asks:
        found = fill(room, ask, area.get(ask.level), ours)
        if found is None:
            # All or nothing: a gang that is placed in part would hold what others could use.
            room.back_to(mark)
            return None
        places[ask.name] = found
        ours.update(place.row for place in found)
    return places


def _spread(
    room: Room, where: tuple[View, Level], used: Ours, count: int
) -> Iterator[tuple[int, int]]:
    """Give nodes with numbers of pods, from few domains; nodes of no domain come last."""
    view, level = where
    ours = set(level.domain_of[list(used)].tolist())
    for domain, share in _domains(view.by_domain.copy(), ours, count):
        yield from _nodes(room, view, (level.rows[domain], used), share)


def _domains(pods: Int64, ours: set[int], missing: int) -> Iterator[tuple[int, int]]:
    """Give the fullest domain that can take all that is missing, else one that can take most."""
    # Nodes without the label share nothing, so together they are no domain to prefer.
    homeless, pods[NO_DOMAIN] = int(pods[NO_DOMAIN]), 0
    while missing and (most := int(pods.max())):
        fitting = np.flatnonzero(pods >= min(missing, most)).tolist()
        best = min(fitting, key=lambda each: (each not in ours, pods[each], each))
        share = min(missing, int(pods[best]))
        yield best, share
        pods[best] = 0
        missing -= share
    yield NO_DOMAIN, min(missing, homeless)


def _nodes(
    room: Room, view: View, places: tuple[Int64 | None, Ours], count: int
) -> list[tuple[int, int]]:
    """Give nodes with numbers of pods, in the order in which they are filled."""
    rows, used = places
    if rows is None:
        return picks(view.pods, _ours_first(room.fullness, sorted(used)), count)
    own = [index for index, row in enumerate(rows.tolist()) if row in used] if used else []
    picked = picks(view.pods[rows], _ours_first(room.fullness[rows], own), count)
    return [(int(rows[index]), pods) for index, pods in picked]


def _ours_first(fullness: Int64, own: list[int]) -> Int64:
    if not own:
        return fullness
    order = fullness.copy()
    # A node that the gang uses keeps its traffic off the network, whatever else has less left.
    order[own] -= OURS
    return order


def picks(pods: Int32 | Int64, order: Int64, missing: int) -> list[tuple[int, int]]:
    """Give the first node that can take all that is missing, else those that can take most."""
    chosen: list[tuple[int, int]] = []
    if missing == 1 and len(pods):
        # Most pod sets are of one pod, so they need not look for the node that can take most.
        best = int(np.where(pods > 0, order, NEVER).argmin())
        return [(best, 1)] if pods[best] else []
    while missing and len(pods):
        most = int(pods[pods.argmax()])
        if not most:
            break
        if missing <= most:
            best = int(np.where(pods >= missing, order, NEVER).argmin())
            return [*chosen, (best, missing)]
        # Nodes that take equally many are as good as each other but for what they have left.
        (largest,) = (pods == most).nonzero()
        taken = largest[_least(order[largest], missing // most)]
        chosen += [(index, most) for index in taken.tolist()]
        pods = pods.copy()
        pods[taken] = 0
        # Several nodes at a time: a gang of hundreds of pods needs a few rounds only.
        missing -= most * len(taken)
    return chosen


def _least(order: Int64, count: int) -> Int64:
    """Give the indexes of the lowest numbers, lowest first, of equal ones the first."""
    if len(order) <= FEW * count:
        return order.argsort(kind="stable")[:count]
    (low,) = (order <= np.partition(order, count - 1)[count - 1]).nonzero()
    least: Int64 = low[order[low].argsort(kind="stable")[:count]]
    return least
