"""When time alone may change a plan: every instant at which anything that depends on it moves."""

from collections.abc import Iterator

from gateway.core.admission import Snapshot
from gateway.core.queues.definitions import Queue
from tests.oracle.lines import SECOND_US, crossings, jobs_of, spent_us, window_of


def next_wake_us(snapshot: Snapshot, now_us: int) -> int | None:
    """Give the earliest instant after now, or None when time changes nothing."""
    return min(instants(snapshot, now_us), default=None)


def instants(snapshot: Snapshot, now_us: int) -> list[int]:
    """Give all such instants after now, as they are known now."""
    return sorted({each for each in _all(snapshot, now_us) if each > now_us})


def _all(snapshot: Snapshot, now_us: int) -> Iterator[int]:
    jobs = jobs_of(snapshot)
    yield from (job.eligible_us for job in jobs)
    yield from (change.at_us for queue in snapshot.queues for change in queue.changes)
    yield from (change.at_us for cohort in snapshot.cohorts for change in cohort.changes)
    for queue in snapshot.queues:
        yield from crossings(queue, [job for job in jobs if job.queue == queue.name])
        yield from _budget_instants(snapshot, queue, now_us)


def _budget_instants(snapshot: Snapshot, queue: Queue, now_us: int) -> Iterator[int]:
    if queue.budget is None:
        return
    _, end_us = window_of(queue.budget, now_us)
    yield end_us
    held = sum(s.gpus for s in snapshot.spans if s.queue == queue.name and not s.until_us)
    left_us = queue.budget.gpu_seconds * SECOND_US - spent_us(snapshot, queue, queue.budget, now_us)
    if held and left_us > 0:
        yield now_us + -(-left_us // held)
