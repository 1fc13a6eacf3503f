"""Making room by moving gangs that nothing but this pass has placed yet.

Gangs are placed in the order of fairness, so an early small one may stand where a later large one
would have to. As long as nothing is committed they may all be placed anew, the largest first. Only
for short passes: placing dozens of gangs again for each one that fails would not pay.

Whoever the nodes refused in this pass stays refused: where a move would make room for one of them
it is not made, for those behind it would else have got what was its due. It keeps the pass monotone
as well, on which every mark of "does not fit" rests.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from gateway.core.devices.fleet import Bool
from gateway.core.jobs.request import RequestClass
from gateway.core.placing.room import Room
from gateway.core.policies.placement import GangPlaces, PlacementPolicy, would_place
from gateway.core.resources import CPU, GPU

MOST_REPACKED = 32
"""Gangs that are placed anew together, and refused ones that are asked whether they fit then."""


class Gang(NamedTuple):
    """A gang with the nodes that each of its pod sets may use."""

    request: RequestClass
    nodes: dict[str, Bool]


@dataclass(frozen=True, slots=True)
class Repacking:
    """How the gangs of one pass are placed anew."""

    room: Room
    place: PlacementPolicy
    mark: int
    """The room's mark before the first of them was placed."""

    def with_newcomer(
        self,
        standing: Sequence[tuple[Gang, GangPlaces]],
        newcomer: Gang,
        refused: Collection[Gang],
    ) -> list[GangPlaces] | None:
        """Place all of these anew, or leave them where they stand.

        Args:
            standing: the gangs of the pass in the order of admission, with their places.
            newcomer: the one that found no room beside them.
            refused: those that found none before it.

        Returns:
            Places in the same order, the newcomer's last; None when not all of them find one, when
            one of the refused would find one too, or when there are too many to try.
        """
        if not standing or max(len(standing), len(refused)) > MOST_REPACKED:
            return None
        # Gangs that run are below the mark, and nothing here can move them.
        self.room.back_to(self.mark)
        found = self._all_placed([*(gang for gang, _ in standing), newcomer])
        if found is not None and not any(map(self._would_fit, refused)):
            return found
        self._put_back(standing)
        return None

    def _all_placed(self, gangs: Sequence[Gang]) -> list[GangPlaces] | None:
        found: dict[int, GangPlaces] = {}
        for index in sorted(range(len(gangs)), key=lambda each: (_size(gangs[each]), each)):
            places = self.place(self.room, gangs[index].request.pod_sets, gangs[index].nodes)
            if places is None:
                return None
            found[index] = places
        return [found[index] for index in range(len(gangs))]

    def _would_fit(self, gang: Gang) -> bool:
        return would_place(self.place, self.room, gang.request.pod_sets, gang.nodes)

    def _put_back(self, standing: Sequence[tuple[Gang, GangPlaces]]) -> None:
        self.room.back_to(self.mark)
        taken = (
            (place, pod_set)
            for gang, places in standing
            for pod_set in gang.request.pod_sets
            for place in places[pod_set.name]
        )
        for place, pod_set in taken:
            self.room.take(place, pod_set)


def _size(gang: Gang) -> tuple[int, int]:
    """Sort the largest first: what one pod needs of a node matters more than how many there are."""
    pods = [dict(pod_set.per_pod) for pod_set in gang.request.pod_sets]
    return -max(pod.get(GPU, 0) for pod in pods), -max(pod.get(CPU, 0) for pod in pods)
