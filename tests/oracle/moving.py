"""Gangs of one cycle moved to let another one in: nothing of it is committed yet."""

from typing import NamedTuple

from gateway.core.placing.room import Room
from tests.oracle.lines import Job
from tests.oracle.tree import Used
from tests.oracle.trying import Admission, Admissions, Case, Choice, passing, placed, room_after

MOST_MOVED = 32
"""Gangs that are placed anew together, and refused ones that may be in the way of it."""


class Refusal(NamedTuple):
    """A class that the nodes of one choice of flavors refused in this cycle."""

    job: Job
    """One of it."""
    choice: Choice
    closed: frozenset[int]
    """Rows that were kept for others when it was tried."""
    is_kept_off: bool
    """Whether it would have stood there."""

    def is_of(self, job: Job, choice: Choice) -> bool:
        """Whether a job with a choice is what was refused."""
        return (self.job.class_index, self.choice) == (job.class_index, choice)


Refusals = tuple[Refusal, ...]


class Trial(NamedTuple):
    """What came of trying one job."""

    admissions: Admissions
    """Everybody with places; one more than before when the job is in."""
    refusals: Refusals


def tried(
    case: Case, used: Used, before: Trial, job: Job, closed: frozenset[int] = frozenset()
) -> Trial:
    """Give the job the first choice that has quota and a place, or note what was refused.

    On closed rows it is not placed: these are kept for others.
    """
    found = before
    for choice, charges in passing(case, used, case.queues[job.queue], job.request):
        if any(each.is_of(job, choice) for each in found.refusals):
            continue
        newcomer = Admission(job, charges, {}, choice, closed)
        admissions = admitted_with(case, found, newcomer)
        if admissions is not None:
            return found._replace(admissions=admissions)
        beside = newcomer._replace(closed=frozenset())
        room = room_after(case, found.admissions)
        is_kept_off = bool(closed) and _placed(case, room, beside) is not None
        refusal = Refusal(job, choice, closed, is_kept_off)
        found = found._replace(refusals=(*found.refusals, refusal))
    return found


def admitted_with(case: Case, before: Trial, newcomer: Admission) -> Admissions | None:
    """Give everybody with places once this gang is in; None when it cannot be.

    It goes into the room that is left; else all gangs of this cycle, if they are few, are placed
    anew, unless one that was refused would fit then.
    """
    places = _placed(case, room_after(case, before.admissions), newcomer)
    if places is not None:
        return (*before.admissions, places)
    if not 0 < len(before.admissions) <= MOST_MOVED or len(before.refusals) > MOST_MOVED:
        return None
    found = _all_placed(case, (*before.admissions, newcomer))
    if found is None:
        return None
    room = room_after(case, found)
    would_fit = (
        placed(case, room.twin(), each.job.request, each.choice, each.closed)
        for each in before.refusals
    )
    return None if any(places is not None for places in would_fit) else found


def _placed(case: Case, room: Room, gang: Admission) -> Admission | None:
    places = placed(case, room, gang.job.request, gang.choice, gang.closed)
    return None if places is None else gang._replace(places=places)


def _all_placed(case: Case, gangs: Admissions) -> Admissions | None:
    """Give these gangs with new places, the largest pods placed first; None without one of them."""
    room, found = room_after(case, ()), dict(enumerate(gangs))
    for index in sorted(found, key=lambda each: (*_pod_size(gangs[each]), each)):
        admission = _placed(case, room, gangs[index])
        if admission is None:
            return None
        found[index] = admission
    return tuple(found.values())


def _pod_size(admission: Admission) -> tuple[int, int]:
    pods = [dict(each.per_pod) for each in admission.job.request.pod_sets]
    return -max(pod.get("gpu", 0) for pod in pods), -max(pod.get("cpu", 0) for pod in pods)
