"""Making room by moving gangs that nothing but this pass has placed yet.

Gangs are placed in the order of fairness, so an early small one may stand where a later large one
would have to. As long as nothing is committed they may all be placed anew, the largest first. Only
for short passes: placing dozens of gangs again for each one that fails would not pay.
"""

from collections.abc import Sequence
from typing import NamedTuple

from gateway.core.admission.asks import FlavorChoice
from gateway.core.admission.trial import Scene
from gateway.core.jobs.request import RequestClass
from gateway.core.policies.placement import GangPlaces, PlacementPolicy
from gateway.core.resources import CPU, GPU

MOST_REPACKED = 32
"""Gangs that are placed anew together."""


class Placed(NamedTuple):
    """A gang with its flavors, and where it stands; nowhere yet for the one that found no room."""

    request: RequestClass
    choice: FlavorChoice
    places: GangPlaces | None = None


def repacked(
    scene: Scene, place: PlacementPolicy, mark: int, gangs: Sequence[Placed]
) -> list[GangPlaces] | None:
    """Place all of these anew, or leave them where they stand.

    Args:
        scene: with everything in its place that has one.
        place: the placement policy.
        mark: the room's mark before the first of them was placed.
        gangs: in the order of admission; the last one has no place yet.

    Returns:
        Places in the same order; None when not all of them find one.
    """
    room = scene.room
    # Gangs that run are below the mark, and nothing here can move them.
    room.back_to(mark)
    found: dict[int, GangPlaces] = {}
    for index in sorted(range(len(gangs)), key=lambda each: (_size(gangs[each].request), each)):
        gang = gangs[index]
        places = place(room, gang.request.pod_sets, scene.nodes(gang.request, gang.choice))
        if places is None:
            break
        found[index] = places
    else:
        return [found[index] for index in range(len(gangs))]
    room.back_to(mark)
    for gang in gangs:
        _put_back(scene, gang)
    return None


def _size(request: RequestClass) -> tuple[int, int]:
    """Sort the largest first: what one pod needs of a node matters more than how many there are."""
    pods = [dict(pod_set.per_pod) for pod_set in request.pod_sets]
    return -max(pod.get(GPU, 0) for pod in pods), -max(pod.get(CPU, 0) for pod in pods)


def _put_back(scene: Scene, gang: Placed) -> None:
    for pod_set in gang.request.pod_sets if gang.places is not None else ():
        for each in (gang.places or {})[pod_set.name]:
            scene.room.take(each, pod_set)
