"""Trying one gang: quota first, then a place for every pod, for one flavor choice after another."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from gateway.core.admission.asks import FlavorChoice, charges_of, choices
from gateway.core.admission.types import Policies, Snapshot
from gateway.core.devices.fleet import Bool, Fleet
from gateway.core.jobs.request import RequestClass
from gateway.core.placing.eligibility import Eligibility
from gateway.core.placing.room import Room
from gateway.core.policies import named
from gateway.core.policies.placement import PLACEMENT, GangPlaces
from gateway.core.queues.definitions import Cohort, Flavor, Queue
from gateway.core.queues.tree import Pair, QuotaTree


class Fit(NamedTuple):
    """A gang that fits, with what it takes."""

    choice: FlavorChoice
    places: GangPlaces
    charges: dict[Pair, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """State that a gang is tried on: quota usage, free room, definitions, policies.

    `ignores_quota` serves questions of the kind "would it fit if quota were no object".
    """

    policies: Policies
    queues: dict[str, Queue]
    cohorts: tuple[Cohort, ...]
    flavors: tuple[Flavor, ...]
    tree: QuotaTree
    room: Room
    eligibility: Eligibility
    ignores_quota: bool = False

    @property
    def fleet(self) -> Fleet:
        """The fleet in the state from which gangs are tried."""
        return self.room.fleet

    def afresh(self) -> "Scene":
        """Give the same state on copies of quota and room, free to be changed."""
        # Both copied: an answer is tried on them while passes go on with the originals.
        return replace(self, tree=self.fresh_tree(), room=self.room.afresh())

    def fresh_tree(self) -> QuotaTree:
        """Give a copy of the quota tree."""
        # Dated changes are in these definitions already, so no instant is asked for.
        return self.tree.with_definitions(tuple(self.queues.values()), self.cohorts)

    def under(
        self, queues: tuple[Queue, ...], cohorts: tuple[Cohort, ...], flavors: tuple[Flavor, ...]
    ) -> "Scene":
        """Give the same use and room under other definitions."""
        return replace(
            self,
            queues={queue.name: queue for queue in queues},
            cohorts=cohorts,
            flavors=flavors,
            tree=self.tree.with_definitions(queues, cohorts),
            eligibility=Eligibility(self.fleet, flavors),
        )

    def choices(self, queue: Queue, request: RequestClass) -> Iterator[FlavorChoice]:
        """Give flavor choices in the queue's order; pod sets that ask for GPUs share one."""
        return choices(queue, request, self.flavors)

    def passing(
        self, queue: Queue, request: RequestClass
    ) -> Iterator[tuple[FlavorChoice, dict[Pair, int]]]:
        """Give the flavor choices that quota lets through, each with what it charges."""
        for choice in self.choices(queue, request):
            charges = charges_of(request, choice)
            # Quota first: it costs a small part of what a search for places costs.
            if self.ignores_quota or self.tree.has_room(queue.name, charges):
                yield choice, charges

    def nodes(self, request: RequestClass, choice: FlavorChoice) -> dict[str, Bool]:
        """Give a mask of the nodes that each pod set may use."""
        return {
            pod_set.name: self.eligibility.nodes(pod_set, choice[pod_set.name])
            for pod_set in request.pod_sets
        }

    def nominate(self, queue: Queue, request: RequestClass) -> dict[Pair, int]:
        """Give the counted charges of the first flavor choice with quota left, else of the first.

        Empty when no flavor is known at all.
        """
        charges = [charges_of(request, choice) for choice in self.choices(queue, request)]
        passing = (each for each in charges if self.tree.has_room(queue.name, each))
        return self.tree.counted(queue.name, next(passing, charges[0] if charges else {}))

    def try_gang(self, queue: Queue, request: RequestClass) -> Fit | None:
        """Take room for a whole gang, or leave everything as it was."""
        place = named("placement", PLACEMENT, self.policies.placement)
        for choice, charges in self.passing(queue, request):
            # Quota first: it costs a few comparisons, and placing a thousand times as much.
            places = place(self.room, request.pod_sets, self.nodes(request, choice))
            if places is not None:
                return Fit(choice=choice, places=places, charges=charges)
        return None

    def look(self, queue: Queue, request: RequestClass) -> Fit | None:
        """Give how a gang would fit, without taking anything."""
        # A look takes room for real and gives it back: what it says is what a trial would do.
        mark = self.room.mark()
        found = self.try_gang(queue, request)
        self.room.back_to(mark)
        return found

    def admit(self, queue: str, request: RequestClass, fit: Fit) -> None:
        """Take what a gang that fits on an equal scene takes."""
        for pod_set in request.pod_sets:
            for place in fit.places[pod_set.name]:
                self.room.take(place, pod_set)
        self.charge(queue, fit)

    def charge(self, queue: str, fit: Fit) -> None:
        """Charge what a gang uses of quota."""
        for pair, amount in fit.charges.items():
            self.tree.charge(queue, pair, amount)


def new_scene(snapshot: Snapshot, policies: Policies) -> Scene:
    """Give the scene at the start of a cycle: live usage charged, the fleet's free room."""
    return Scene(
        policies=policies,
        queues={queue.name: queue for queue in snapshot.queues},
        cohorts=snapshot.cohorts,
        flavors=snapshot.flavors,
        tree=tree_of(snapshot),
        room=Room(snapshot.fleet),
        eligibility=Eligibility(snapshot.fleet, snapshot.flavors),
    )


def tree_of(snapshot: Snapshot) -> QuotaTree:
    """Give the quota tree with live usage; usage of queues that are gone counts nowhere."""
    rows = [(use.queue, (use.flavor, use.resource), use.amount) for use in snapshot.usage]
    return QuotaTree(snapshot.queues, snapshot.cohorts, rows)
