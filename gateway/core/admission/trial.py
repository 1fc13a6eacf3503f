"""Trying one gang: quota first, then a place for every pod, for one flavor choice after another."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product

from gateway.core.admission.types import Policies, Snapshot
from gateway.core.devices.eligibility import eligible_nodes
from gateway.core.devices.fleet import Bool
from gateway.core.devices.room import Room
from gateway.core.jobs.request import PodSetRequest, RequestClass
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

    places: GangPlaces
    charges: dict[Pair, int]


@dataclass(slots=True, kw_only=True)
class Scene:
    """State that a gang is tried on: quota usage, free room, definitions, policies.

    `ignores_quota` serves questions of the kind "would it fit if quota were no object".
    """

    snapshot: Snapshot
    policies: Policies
    tree: QuotaTree
    room: Room
    ignores_quota: bool = False
    _nodes: dict[tuple[PodSetRequest, str], Bool] = field(default_factory=dict)

    def queue(self, name: str) -> Queue:
        """Give a queue's definition."""
        return next(queue for queue in self.snapshot.queues if queue.name == name)

    def choices(self, queue: Queue, request: RequestClass) -> Iterator[FlavorChoice]:
        """Give flavor choices in the queue's order; pod sets that ask for GPUs share one."""
        flavors = flavors_of(queue, self.snapshot.flavors)
        light = [pod_set.name for pod_set in request.pod_sets if not _asks_gpus(pod_set)]
        heavy = [pod_set.name for pod_set in request.pod_sets if _asks_gpus(pod_set)]
        for shared in flavors if heavy else flavors[:1]:
            for others in product(flavors, repeat=len(light)):
                yield {**dict.fromkeys(heavy, shared), **dict(zip(light, others, strict=True))}

    def nodes(self, pod_set: PodSetRequest, flavor: Flavor) -> Bool:
        """Give the nodes that a pod set may use, remembered for the cycle."""
        key = (pod_set, flavor.name)
        if key not in self._nodes:
            self._nodes[key] = eligible_nodes(self.room.fleet, pod_set, flavor)
        return self._nodes[key]

    def is_within_quota(self, queue: str, charges: dict[Pair, int]) -> bool:
        """Whether every counted pair has enough left."""
        return self.ignores_quota or all(
            not self.tree.is_counted(queue, pair) or self.tree.available(queue, pair) >= amount
            for pair, amount in charges.items()
        )

    def try_gang(self, queue: Queue, request: RequestClass) -> Fit | None:
        """Take room for a whole gang, or leave everything as it was."""
        place = named("placement", PLACEMENT, self.policies.placement)
        for choice in self.choices(queue, request):
            charges = charges_of(request, choice)
            if not self.is_within_quota(queue.name, charges):
                continue
            nodes = {
                pod_set.name: self.nodes(pod_set, choice[pod_set.name])
                for pod_set in request.pod_sets
            }
            places = place(self.room, request.pod_sets, nodes)
            if places is not None:
                return Fit(places=places, charges=charges)
        return None

    def fits(self, queue: Queue, request: RequestClass) -> bool:
        """Whether a gang fits, without taking anything."""
        mark = self.room.mark()
        found = self.try_gang(queue, request)
        self.room.back_to(mark)
        return found is not None


def new_scene(snapshot: Snapshot, policies: Policies) -> Scene:
    """Give the scene at the start of a cycle: live usage charged, the fleet's free room."""
    tree = QuotaTree(snapshot.queues, snapshot.cohorts)
    for use in snapshot.usage:
        if use.queue in tree.queues:
            tree.charge(use.queue, (use.flavor, use.resource), use.amount)
    return Scene(snapshot=snapshot, policies=policies, tree=tree, room=Room(snapshot.fleet))


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
