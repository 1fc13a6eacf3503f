"""Why a class that was tried does not fit; judged on the state at the start of the cycle."""

import numpy as np

from gateway.core.admission.lifts import whole
from gateway.core.jobs.request import RequestClass
from gateway.core.placing.room import Room, with_rule
from gateway.core.vocabulary import PairRule, Reason
from tests.oracle.lines import Job
from tests.oracle.tree import (
    Charges,
    Used,
    available,
    counted,
    has_room,
    limit_left,
    own_left,
    path,
    potential,
)
from tests.oracle.trying import (
    Admissions,
    Case,
    Choice,
    charges_of,
    choices,
    passing,
    placed,
    room_after,
    try_gang,
    used_after,
)


def why_failed(case: Case, job: Job, before: Admissions) -> Reason:
    """Give the primary reason of a class that failed after these admissions."""
    if fits_after(case, job, ()):
        own = tuple(each for each in before if each.job.queue == job.queue)
        behind_others = fits_after(case, job, own)
        return Reason.BEHIND_FAIR_SHARE if behind_others else Reason.BEHIND_PRIORITY
    if never_fits(case, job):
        return Reason.NEVER_FITS
    every = [charges_of(job.request, each) for each in offered(case, job)]
    used = used_after(case, ())
    if every and not any(has_room(case.tree, used, job.queue, each) for each in every):
        return quota_reason(case, job.queue, every[0])
    return place_reason(case, job)


def fits_after(case: Case, job: Job, before: Admissions) -> bool:
    """Whether the gang fits the start of the cycle with these admitted, protecting nobody."""
    used, room = used_after(case, before), room_after(case, before)
    return try_gang(case, used, room, job) is not None


def offered(case: Case, job: Job) -> list[Choice]:
    """Give the job's flavor choices."""
    return choices(case, case.queues[job.queue], job.request)


def never_fits(case: Case, job: Job) -> bool:
    """Whether it is certain that the gang fits no idle, healthy fleet that quota ever allows."""
    return case.snapshot.fleet.is_complete and not any(
        could_ever_pay(case, job.queue, charges_of(job.request, choice))
        and could_ever_stand(case, job.request, choice)
        for choice in offered(case, job)
    )


def could_ever_pay(case: Case, queue: str, charges: Charges) -> bool:
    """Whether quota could give this much with everything idle."""
    wanted = counted(case.tree, queue, charges)
    node = ("queue", queue)
    return all(potential(case.tree, node, pair) >= wanted[pair] for pair in wanted)


def could_ever_stand(case: Case, request: RequestClass, choice: Choice) -> bool:
    """Whether the idle fleet may hold the gang: each pod set alone, and all of them together."""
    alone = all(
        # Slices are cut out of the whole gang; a set alone may be less than one.
        placed(case, idle_room(case), whole(RequestClass(pod_sets=(each,))), choice) is not None
        for each in request.pod_sets
    )
    together = placed(case, idle_room(case), request, choice) or placed(
        case, idle_room(case), with_rule(request, PairRule.NONE), choice
    )
    # Packing several large pod sets is a guess, so its failure proves nothing.
    is_guess = sum(each.count > 1 for each in request.pod_sets) > 1
    return alone and (together is not None or is_guess)


def idle_room(case: Case) -> Room:
    """Give the fleet with nothing in use and every node in service."""
    rows = range(len(case.snapshot.fleet))
    return Room(case.snapshot.fleet).empty(rows).heal(rows)


def quota_reason(case: Case, queue: str, charges: Charges) -> Reason:
    """Tell a borrowing limit from missing quota, over the pairs that are short."""
    used = used_after(case, ())
    wanted = counted(case.tree, queue, charges)
    short = {
        pair: amount
        for pair, amount in wanted.items()
        if available(case.tree, used, ("queue", queue), pair) < amount
    }
    limited = limit_binds(case, used, queue, short)
    return Reason.OVER_BORROWING_LIMIT if limited else Reason.OVER_QUOTA


def limit_binds(case: Case, used: Used, queue: str, short: Charges) -> bool:
    """Whether some node on the path may not borrow what the nodes below do not cover."""
    for pair, amount in short.items():
        rest = amount
        for node in path(case.tree, ("queue", queue))[:-1]:
            rest -= own_left(case.tree, used, node, pair)
            if limit_left(case.tree, used, node, pair) < rest:
                return True
    return False


def place_reason(case: Case, job: Job) -> Reason:
    """Tell apart what keeps a gang that quota lets through from having places."""
    nodes = range(len(case.snapshot.fleet))
    if stands(case, Room(case.snapshot.fleet).heal(nodes), job):
        return Reason.NODES_UNAVAILABLE
    if not case.snapshot.fleet.is_complete and not stands(case, idle_room(case), job):
        return Reason.NODES_UNAVAILABLE
    if not sum_suffices(case, job):
        return Reason.GANG_DOES_NOT_FIT
    free = job._replace(request=with_rule(job.request, PairRule.NONE))
    is_aligned = stands(case, Room(case.snapshot.fleet), free)
    return Reason.NO_ALIGNED_DEVICES if is_aligned else Reason.FRAGMENTED_DEVICES


def stands(case: Case, room: Room, job: Job) -> bool:
    """Whether a gang fits this room with the usage at the start."""
    return try_gang(case, used_after(case, ()), room, job) is not None


def sum_suffices(case: Case, job: Job) -> bool:
    """Whether the nodes that one choice may use have, all together, enough of everything."""
    queue = case.queues[job.queue]
    found = passing(case, used_after(case, ()), queue, job.request)
    return any(holds_sum(case, job.request, choice) for choice, _ in found)


def holds_sum(case: Case, request: RequestClass, choice: Choice) -> bool:
    """Whether the usable nodes of a choice add up to the gang."""
    flavors = {flavor.name: flavor for flavor in case.snapshot.flavors}
    room = Room(case.snapshot.fleet)
    usable = np.zeros(len(case.snapshot.fleet), dtype=np.bool_)
    for each in request.pod_sets:
        usable |= case.eligibility.nodes(each, flavors[choice[each.name]])
    free = room.free_sums(room.is_available & usable)
    return all(amount <= free.get(name, 0) for name, amount in request.total)
