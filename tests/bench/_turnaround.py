"""How long quota stays idle between a finish and the start that takes it up. Pure arithmetic.

In each cohort, what a start takes are the CPUs that have been free longest, so that a CPU which
lies idle while others are taken up again and again is not overlooked. A wait counts only where
somebody was waiting for it: from the finish, or from the arrival of the starting job if that came
later.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from heapq import merge
from typing import NamedTuple


class Course(NamedTuple):
    """One job: when it came, started and finished, in seconds; what it takes of its cohort."""

    cohort: str
    cpus: int
    arrived: float
    started: float
    finished: float


def turnarounds(courses: Iterable[Course], quota: int) -> list[float]:
    """Give the wait of each CPU that was freed and taken up again; `quota` CPUs a cohort."""
    by_cohort: dict[str, list[Course]] = {}
    for course in courses:
        by_cohort.setdefault(course.cohort, []).append(course)
    return [wait for each in by_cohort.values() for wait in _waits(each, quota)]


def _waits(courses: Sequence[Course], quota: int) -> list[float]:
    # What was never used has waited for nobody.
    free = deque([(float("-inf"), quota)])
    waits: list[float] = []
    starts = ((each.started, 1, each) for each in sorted(courses, key=lambda each: each.started))
    ends = ((each.finished, 0, each) for each in sorted(courses, key=lambda each: each.finished))
    # At one instant a finish comes before the start that it makes possible.
    for at, is_start, course in merge(starts, ends, key=lambda step: step[:2]):
        if is_start:
            waits += _taken(free, course)
        else:
            free.append((at, course.cpus))
    return waits


def _taken(free: deque[tuple[float, int]], course: Course) -> list[float]:
    """Take a start's CPUs from those that have been free longest; gives the wait of each."""
    wanted, waits = course.cpus, []
    while wanted and free:
        since, count = free.popleft()
        used = min(wanted, count)
        if count > used:
            free.appendleft((since, count - used))
        if since != float("-inf"):
            waits += [course.started - max(since, course.arrived)] * used
        wanted -= used
    return waits


def quantile(values: Sequence[float], share: float) -> float:
    """Give the value that so many do not exceed; 0 of none."""
    if not values:
        return 0.0
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]
