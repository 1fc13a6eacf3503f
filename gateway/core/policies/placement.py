"""Placement policies: where the pods of one gang go. All of them or none.

A policy is a function of the free room, the gang's pod sets and the nodes each may use. It takes
what it gives from the room, or leaves the room as it was and gives None. All find a place whenever
`pack` finds one, so which is chosen decides where gangs start and not whether they may.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Protocol

from gateway.core.devices.fleet import Bool
from gateway.core.placing.attempts import Attempt, PodSets
from gateway.core.placing.filling import GangPlaces
from gateway.core.placing.room import Room
from gateway.core.placing.scoring import place_on_one
from gateway.core.placing.searching import place
from gateway.core.placing.spreading import spread_out
from gateway.core.placing.typical import Typical

__all__ = [
    "ALWAYS_ALIKE",
    "PLACEMENT",
    "GangPlaces",
    "PlacementPolicy",
    "PodSets",
    "fragmentation",
    "pack",
    "spread",
    "would_place",
]

Put = Callable[[Room, Attempt], GangPlaces | None]
"""Takes room for a whole gang under one choice of rules, or for nobody."""


class PlacementPolicy(Protocol):
    """Place a whole gang, or nothing."""

    def __call__(self, room: Room, pod_sets: PodSets, nodes: dict[str, Bool]) -> GangPlaces | None:
        """Give every pod's place; `nodes` is a mask of allowed nodes by pod set name."""


def would_place(
    place: PlacementPolicy, room: Room, pod_sets: PodSets, nodes: dict[str, Bool]
) -> bool:
    """Whether a policy finds a place for a gang; nothing stays taken."""
    mark = room.mark()
    is_placed = place(room, pod_sets, nodes) is not None
    room.back_to(mark)
    return is_placed


def pack(room: Room, pod_sets: PodSets, nodes: dict[str, Bool]) -> GangPlaces | None:
    """Use few nodes, and of those the fullest, so that whole nodes stay free for large gangs.

    Pod sets that require one level share a domain of it, the one in which least is left. Preferred
    levels and pair rules are first taken as required; levels are given up last. The search is exact
    where at most one pod set has more than one pod, which covers every PyTorchJob.
    """
    return _first(room, room.attempts(pod_sets, nodes), place)


def fragmentation(room: Room, pod_sets: PodSets, nodes: dict[str, Bool]) -> GangPlaces | None:
    """Put a gang that one node can take where least becomes useless for what is typically asked.

    Gangs of several pod sets or nodes are packed, and so is everybody while nothing is known of
    what is typical, or nothing that needs GPUs is.
    """
    if not room.typical or len(pod_sets) > 1:
        return pack(room, pod_sets, nodes)
    return _first(room, room.attempts(pod_sets, nodes), partial(_sparing, room.typical))


def spread(room: Room, pod_sets: PodSets, nodes: dict[str, Bool]) -> GangPlaces | None:
    """Use many nodes, and of those the emptiest, so that a node that fails takes little with it.

    Gangs that want to share a domain are packed into it: they said what they care for.
    """
    return _first(room, room.attempts(pod_sets, nodes), _spread)


def _first(room: Room, attempts: Iterable[Attempt], put: Put) -> GangPlaces | None:
    """Give what comes of the first attempt that holds."""
    # From the strictest reading of the gang's wishes to the loosest.
    for attempt in attempts:
        places = put(room, attempt)
        if places is not None:
            return places
    return None


def _sparing(typical: Typical, room: Room, attempt: Attempt) -> GangPlaces | None:
    if attempt.slicing:
        return place(room, attempt)
    (ask,) = attempt.asks
    found = place_on_one(room, typical, ask)
    return {ask.name: found} if found else place(room, attempt)


def _spread(room: Room, attempt: Attempt) -> GangPlaces | None:
    if attempt.slicing or any(ask.label for ask in attempt.asks):
        return place(room, attempt)
    mark, places = room.mark(), {}
    for ask in attempt.asks:
        found = spread_out(room, ask)
        if not found:
            # One set stands in the way of another; whether they fit together, packing will tell.
            room.back_to(mark)
            return place(room, attempt)
        places[ask.name] = found
    return places


ALWAYS_ALIKE = frozenset({"pack", "spread"})
"""Policies that do not look at what is typically asked for; working it out would be wasted."""
PLACEMENT: dict[str, PlacementPolicy] = {
    "pack": pack,
    "fragmentation": fragmentation,
    "spread": spread,
}
