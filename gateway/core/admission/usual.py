"""What is usually asked for, worked out for the fleet and the flavors of the moment.

The same requests in about the same numbers give the same object, so that a placement policy may
remember what it learned about nodes. Decides nothing.
"""

from collections.abc import Iterator
from operator import itemgetter
from typing import NamedTuple

import numpy as np

from gateway.core.admission.trial import Scene
from gateway.core.devices.fleet import Bool
from gateway.core.jobs.request import PodSetRequest, RequestClass
from gateway.core.placing.typical import MOST_TYPICAL, Asked, Typical, largest_of
from gateway.core.resources import GPU
from gateway.core.waiting.table import GONE, JobTable

Requested = tuple[tuple[RequestClass, int], ...]
"""Request classes and how many jobs of each."""
LEADING_BITS = 2
"""A number is told from another by so many: each job that comes or goes changes it a little."""


class _Wanted(NamedTuple):
    pod_set: PodSetRequest
    weight: int
    masks: tuple[Bool, ...]
    """Nodes that it may use, by flavor."""


class Usual:
    """Remembers the last answer."""

    def __init__(self) -> None:
        """Start with none."""
        self._wanted: list[_Wanted] = []
        self._typical: Typical | None = None

    def typical(self, scene: Scene, requested: Requested) -> Typical:
        """Give what is typically asked of a scene's fleet by these."""
        wanted = list(_wanted(scene, requested))
        known = self._typical
        if known is None or not self._still_holds(known, scene, wanted):
            known = self._typical = Typical(scene.room, _asked(wanted))
            self._wanted = wanted
        return known

    def _still_holds(self, known: Typical, scene: Scene, wanted: list[_Wanted]) -> bool:
        # Numbers of states mean nothing in a room that was begun anew.
        is_same_fleet = known.shapes is scene.room.shapes
        if not is_same_fleet or known.largest != largest_of(scene.fleet):
            return False
        return len(wanted) == len(self._wanted) and all(map(_is_alike, wanted, self._wanted))


def requested_by(table: JobTable, classes: dict[int, RequestClass]) -> Requested:
    """Give what those who wait ask for, by class id."""
    waiting = table.class_id[: table.count][table.stage[: table.count] != GONE]
    ids, numbers = np.unique(waiting, return_counts=True)
    counted = zip(ids.tolist(), numbers.tolist(), strict=True)
    return tuple((classes[class_id], jobs) for class_id, jobs in counted if class_id in classes)


def _wanted(scene: Scene, requested: Requested) -> Iterator[_Wanted]:
    # Without a flavor there is no node that anybody could ask for.
    for weight, pod_set in _most_wanted(requested) if scene.flavors else ():
        masks = _masks(scene, pod_set)
        if masks:
            yield _Wanted(pod_set, weight, masks)


def _most_wanted(requested: Requested) -> list[tuple[int, PodSetRequest]]:
    """Give the pod sets with GPUs that are asked for most, with how many pods of them there are."""
    # Others say nothing about GPUs, and in some places they are nearly all.
    every = [each for each in _pod_sets(requested) if GPU in dict(each[1].per_pod)]
    every.sort(key=itemgetter(0), reverse=True)
    least = [weight for weight, _ in every[MOST_TYPICAL - 1 : MOST_TYPICAL]]
    # Those that are as frequent as the last are all looked at, or the order of rows would decide.
    return [each for each in every if [each[0]] >= least]


def _pod_sets(requested: Requested) -> Iterator[tuple[int, PodSetRequest]]:
    for request, jobs in requested:
        for each in request.pod_sets:
            yield _rounded(jobs * each.count), each


def _masks(scene: Scene, pod_set: PodSetRequest) -> tuple[Bool, ...]:
    """Give the nodes that a pod set may use, by flavor; nothing for one that makes no sense."""
    try:
        scene.room.shapes.fits(pod_set)
        # Whose queue may use which flavor does not matter: what is usual is so for all.
        return tuple(scene.eligibility.nodes(pod_set, flavor) for flavor in scene.flavors)
    except (AttributeError, KeyError, TypeError, ValueError):
        # An old row must not stop everybody; where somebody waits with it, its turn will tell.
        return ()


def _asked(wanted: list[_Wanted]) -> Iterator[Asked]:
    nodes: dict[tuple[int, ...], Bool] = {}
    for each in wanted:
        key = tuple(map(id, each.masks))
        if key not in nodes:
            nodes[key] = np.logical_or.reduce(each.masks)
        yield Asked(each.pod_set, nodes[key], each.weight)


def _rounded(number: int) -> int:
    spare = max(0, number.bit_length() - LEADING_BITS)
    return number >> spare << spare


def _is_alike(one: _Wanted, other: _Wanted) -> bool:
    # Masks are told apart by identity: other labels or taints give other objects.
    if one[:2] != other[:2] or len(one.masks) != len(other.masks):
        return False
    return all(mine is theirs for mine, theirs in zip(one.masks, other.masks, strict=True))
