"""Trying one gang: quota first, then a place for every pod, for one flavor choice after another."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import filterfalse, product

from gateway.core.admission.types import Policies, Snapshot
from gateway.core.devices.fleet import Bool
from gateway.core.jobs.request import PodSetRequest, RequestClass
from gateway.core.placing.eligibility import Eligibility
from gateway.core.placing.room import Room
from gateway.core.policies import named
from gateway.core.policies.placement import PLACEMENT, GangPlaces
from gateway.core.queues.definitions import Flavor, Queue
from gateway.core.queues.tree import Pair, QuotaTree
from gateway.core.resources import GPU

FlavorChoice = dict[str, Flavor]
"""Flavor by pod set name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """A gang that fits, with what it takes."""

    choice: FlavorChoice
    places: GangPlaces
    charges: dict[Pair, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """State that a gang is tried on: quota usage, free room, definitions, policies.

    `ignores_quota` serves questions of the kind "would it fit if quota were no object".
    """

    snapshot: Snapshot
    policies: Policies
    tree: QuotaTree
    room: Room
    eligibility: Eligibility
    queues: dict[str, Queue]
    ignores_quota: bool = False

    def afresh(self) -> "Scene":
        """Give the same snapshot with untouched quota and room."""
        return replace(self, tree=tree_of(self.snapshot), room=self.room.afresh())

    def choices(self, queue: Queue, request: RequestClass) -> Iterator[FlavorChoice]:
        """Give flavor choices in the queue's order; pod sets that ask for GPUs share one."""
        flavors = flavors_of(queue, self.snapshot.flavors)
        light = [pod_set.name for pod_set in filterfalse(_asks_gpus, request.pod_sets)]
        heavy = [pod_set.name for pod_set in filter(_asks_gpus, request.pod_sets)]
        for shared in flavors if heavy else flavors[:1]:
            for others in product(flavors, repeat=len(light)):
                yield {**dict.fromkeys(heavy, shared), **dict(zip(light, others, strict=True))}

    def passing(
        self, queue: Queue, request: RequestClass
    ) -> Iterator[tuple[FlavorChoice, dict[Pair, int]]]:
        """Give the flavor choices that quota lets through, each with what it charges."""
        for choice in self.choices(queue, request):
            charges = charges_of(request, choice)
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
            places = place(self.room, request.pod_sets, self.nodes(request, choice))
            if places is not None:
                return Fit(choice=choice, places=places, charges=charges)
        return None

    def look(self, queue: Queue, request: RequestClass) -> Fit | None:
        """Give how a gang would fit, without taking anything."""
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
        snapshot=snapshot,
        policies=policies,
        tree=tree_of(snapshot),
        room=Room(snapshot.fleet),
        eligibility=Eligibility(snapshot.fleet, snapshot.flavors),
        queues={queue.name: queue for queue in snapshot.queues},
    )


def tree_of(snapshot: Snapshot) -> QuotaTree:
    """Give the quota tree with live usage; usage of queues that are gone counts nowhere."""
    tree = QuotaTree(snapshot.queues, snapshot.cohorts)
    for use in snapshot.usage:
        if use.queue in tree.queues:
            tree.charge(use.queue, (use.flavor, use.resource), use.amount)
    return tree


def flavors_of(queue: Queue, flavors: tuple[Flavor, ...]) -> list[Flavor]:
    """Give the flavors a queue may use, in its order; all by name when it names none."""
    by_name = {flavor.name: flavor for flavor in flavors}
    names = queue.flavors or tuple(sorted(by_name))
    return [by_name[name] for name in names if name in by_name]


def charges_of(request: RequestClass, choice: FlavorChoice) -> dict[Pair, int]:
    """Give what a gang charges by (flavor, resource)."""
    charges: dict[Pair, int] = {}
    for pod_set in request.pod_sets:
        flavor = choice[pod_set.name].name
        for resource, amount in pod_set.total:
            pair = (flavor, resource)
            charges[pair] = charges.get(pair, 0) + amount
    return charges


def _asks_gpus(pod_set: PodSetRequest) -> bool:
    return dict(pod_set.per_pod).get(GPU, 0) > 0
