"""One gang against one state: flavor choices, what quota lets through, a place for every pod."""

from collections.abc import Iterable
from itertools import product
from typing import NamedTuple

from gateway.core.admission import Snapshot
from gateway.core.devices.fleet import Bool
from gateway.core.jobs.request import PodSetRequest, RequestClass
from gateway.core.placing.eligibility import Eligibility
from gateway.core.placing.room import Room
from gateway.core.policies.placement import GangPlaces, pack
from gateway.core.queues.definitions import Queue
from gateway.core.vocabulary import WhenCanBorrow
from tests.oracle.lines import Job
from tests.oracle.tree import Charges, Pair, Tree, Used, counted, grows_beyond, has_room, plus

Choice = dict[str, str]
"""Flavor by pod set."""


class Admission(NamedTuple):
    """A gang with what it was given."""

    job: Job
    charges: dict[Pair, int]
    places: GangPlaces
    choice: Choice
    closed: frozenset[int] = frozenset()
    """Rows that were kept for others when its turn came."""


class Case(NamedTuple):
    """What stays the same in one cycle."""

    snapshot: Snapshot
    now_us: int
    tree: Tree
    queues: dict[str, Queue]
    eligibility: Eligibility
    starvation_seconds: int = 1800


Admissions = tuple[Admission, ...]


def choices(case: Case, queue: Queue, request: RequestClass) -> list[Choice]:
    """Give flavor choices in the queue's order; pod sets that ask for GPUs share one."""
    known = {flavor.name for flavor in case.snapshot.flavors}
    flavors = [name for name in queue.flavors or sorted(known) if name in known]
    heavy = [each.name for each in request.pod_sets if asks_gpus(each)]
    light = [each.name for each in request.pod_sets if not asks_gpus(each)]
    return [
        {**dict.fromkeys(heavy, shared), **dict(zip(light, others, strict=True))}
        for shared in (flavors if heavy else flavors[:1])
        for others in product(flavors, repeat=len(light))
    ]


def asks_gpus(pod_set: PodSetRequest) -> bool:
    """Whether pods of the set want GPUs."""
    return dict(pod_set.per_pod).get("gpu", 0) > 0


def charges_of(request: RequestClass, choice: Choice) -> dict[Pair, int]:
    """Give what a gang takes by (flavor, resource), counted by quota or not."""
    charges: dict[Pair, int] = {}
    for pod_set in request.pod_sets:
        for resource, amount in pod_set.total:
            pair = (choice[pod_set.name], resource)
            charges[pair] = charges.get(pair, 0) + amount
    return charges


def used_after(case: Case, admissions: Iterable[Admission]) -> Used:
    """Sum up what the queues use: live gangs, and those admitted so far."""
    used: Used = {}
    for live in case.snapshot.usage:
        if live.queue in case.queues:
            used = plus(used, live.queue, {(live.flavor, live.resource): live.amount})
    for admission in admissions:
        used = plus(used, admission.job.queue, admission.charges)
    return used


def room_after(case: Case, admissions: Iterable[Admission]) -> Room:
    """Fill the fleet's free room again with those admitted so far."""
    room = Room(case.snapshot.fleet)
    for admission in admissions:
        for pod_set in admission.job.request.pod_sets:
            for place in admission.places[pod_set.name]:
                room.take(place, pod_set)
    return room


def passing(
    case: Case, used: Used, queue: Queue, request: RequestClass
) -> list[tuple[Choice, dict[Pair, int]]]:
    """Give the choices that quota lets through, in the order in which they are tried."""
    every = [(choice, charges_of(request, choice)) for choice in choices(case, queue, request)]
    found = [each for each in every if has_room(case.tree, used, queue.name, each[1])]
    if queue.when_can_borrow is WhenCanBorrow.TRY_NEXT_FLAVOR:
        # Stable: inside both halves the queue's order stays.
        found.sort(key=lambda each: borrows(case.tree, used, queue.name, each[1]))
    return found


def borrows(tree: Tree, used: Used, queue: str, charges: Charges) -> bool:
    """Whether a queue would go beyond its own quota of a counted pair that it asks for."""
    wanted = counted(tree, queue, charges)
    return grows_beyond(tree, plus(used, queue, wanted), ("queue", queue), wanted)


def nominate(case: Case, used: Used, queue: Queue, request: RequestClass) -> dict[Pair, int]:
    """Give the counted charges of the choice tried first; of the first of all if none passes."""
    found = [charges for _, charges in passing(case, used, queue, request)]
    every = [charges_of(request, choice) for choice in choices(case, queue, request)]
    return counted(case.tree, queue.name, (found or every or [{}])[0])


def nodes_of(
    case: Case, pod_set: PodSetRequest, choice: Choice, closed: frozenset[int] = frozenset()
) -> Bool:
    """Give a mask of the nodes that a pod set may use; closed ones are kept for somebody else."""
    flavors = {flavor.name: flavor for flavor in case.snapshot.flavors}
    nodes = case.eligibility.nodes(pod_set, flavors[choice[pod_set.name]]).copy()
    nodes[sorted(closed)] = False
    return nodes


def placed(
    case: Case,
    room: Room,
    request: RequestClass,
    choice: Choice,
    closed: frozenset[int] = frozenset(),
) -> GangPlaces | None:
    """Give a place for every pod of a gang, or nothing."""
    nodes = {each.name: nodes_of(case, each, choice, closed) for each in request.pod_sets}
    return pack(room, request.pod_sets, nodes)


def try_gang(case: Case, used: Used, room: Room, job: Job) -> Admission | None:
    """Give what a gang gets by the first choice that has both quota and places."""
    for choice, charges in passing(case, used, case.queues[job.queue], job.request):
        places = placed(case, room, job.request, choice)
        if places is not None:
            return Admission(job, charges, places, choice)
    return None
