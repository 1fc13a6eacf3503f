"""Gangs of one cycle moved to let another one in: nothing of it is committed yet."""

from tests.oracle.lines import Job
from tests.oracle.tree import Used
from tests.oracle.trying import (
    Admission,
    Admissions,
    Case,
    passing,
    placed,
    room_after,
    try_gang,
)

MOST_MOVED = 32
"""Gangs that are placed anew together."""


def admitted_with(case: Case, used: Used, admissions: Admissions, job: Job) -> Admissions | None:
    """Give everybody with places once this gang is in; None when it cannot be.

    It gets the first choice that has quota and a place in the room that is left; else the first for
    which all gangs of this cycle, if they are few, find places anew.
    """
    found = try_gang(case, used, room_after(case, admissions), job)
    if found is not None:
        return (*admissions, found)
    if not 0 < len(admissions) <= MOST_MOVED:
        return None
    choices = passing(case, used, case.queues[job.queue], job.request)
    gangs = ((*admissions, Admission(job, charges, {}, choice)) for choice, charges in choices)
    return next(filter(None, (_all_placed(case, each) for each in gangs)), None)


def _all_placed(case: Case, admissions: Admissions) -> Admissions | None:
    """Give these gangs with new places, the largest pods placed first; None without one of them."""
    room, found = room_after(case, ()), dict(enumerate(admissions))
    for index in sorted(found, key=lambda each: (*_pod_size(admissions[each]), each)):
        gang = admissions[index]
        places = placed(case, room, gang.job.request, gang.choice)
        if places is None:
            return None
        found[index] = gang._replace(places=places)
    return tuple(found.values())


def _pod_size(admission: Admission) -> tuple[int, int]:
    pods = [dict(each.per_pod) for each in admission.job.request.pod_sets]
    return -max(pod.get("gpu", 0) for pod in pods), -max(pod.get("cpu", 0) for pod in pods)
