"""Placement policies: where the pods of one gang go. All of them or none.

A policy is a function of the free room, the gang's pod sets and the nodes each may use. It takes
what it gives from the room, or leaves the room as it was and gives None.
"""

from typing import Protocol

from gateway.core.devices.fleet import Bool
from gateway.core.placing.attempts import PodSets
from gateway.core.placing.room import Room
from gateway.core.placing.searching import GangPlaces, place

__all__ = ["PLACEMENT", "GangPlaces", "PlacementPolicy", "PodSets", "pack"]


class PlacementPolicy(Protocol):
    """Place a whole gang, or nothing."""

    def __call__(self, room: Room, pod_sets: PodSets, nodes: dict[str, Bool]) -> GangPlaces | None:
        """Give every pod's place; `nodes` is a mask of allowed nodes by pod set name."""


def pack(room: Room, pod_sets: PodSets, nodes: dict[str, Bool]) -> GangPlaces | None:
    """Use few nodes, and of those the fullest, so that whole nodes stay free for large gangs.

    Pod sets that require one level share a domain of it, the one in which least is left. Preferred
    levels and pair rules are first taken as required; levels are given up last. The search is exact
    where at most one pod set has more than one pod, which covers every PyTorchJob.
    """
    # From the strictest reading of its wishes to the loosest; one that holds ends the search.
    for attempt in room.attempts(pod_sets, nodes):
        places = place(room, attempt)
        if places is not None:
            return places
    return None


PLACEMENT: dict[str, PlacementPolicy] = {"pack": pack}
