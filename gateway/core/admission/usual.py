"""What is usually asked for, worked out for the fleet and the flavors of the moment.

The same requests in about the same numbers give the same object, so that a placement policy may
remember what it learned about nodes. Decides nothing.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from gateway.core.admission.trial import Scene
from gateway.core.devices.fleet import Bool
from gateway.core.jobs.request import PodSetRequest, RequestClass
from gateway.core.placing.typical import Asked, Typical, largest_of
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
            known = self._typical = Typical(scene.room, map(_asked, wanted))
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
    for request, jobs in requested if scene.flavors else ():
        for each in request.pod_sets:
            masks = _masks(scene, each)
            if masks:
                yield _Wanted(each, _rounded(jobs * each.count), masks)


def _masks(scene: Scene, pod_set: PodSetRequest) -> tuple[Bool, ...]:
    """Give the nodes that a pod set may use, by flavor; nothing for one that makes no sense."""
    try:
        scene.room.shapes.fits(pod_set)
        # Whose queue may use which flavor does not matter: what is usual is so for all.
        return tuple(scene.eligibility.nodes(pod_set, flavor) for flavor in scene.flavors)
    except (AttributeError, KeyError, TypeError, ValueError):
        # An old row must not stop everybody; where somebody waits with it, its turn will tell.
        return ()


def _asked(wanted: _Wanted) -> Asked:
    return Asked(wanted.pod_set, np.logical_or.reduce(wanted.masks), wanted.weight)


def _rounded(number: int) -> int:
    spare = max(0, number.bit_length() - LEADING_BITS)
    return number >> spare << spare


def _is_alike(one: _Wanted, other: _Wanted) -> bool:
    # Masks are told apart by identity: other labels or taints give other objects.
    if one[:2] != other[:2] or len(one.masks) != len(other.masks):
        return False
    return all(mine is theirs for mine, theirs in zip(one.masks, other.masks, strict=True))
