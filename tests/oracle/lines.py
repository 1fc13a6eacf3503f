"""Who may start at all, and in which order the jobs of one queue stand."""

from collections.abc import Iterator
from typing import NamedTuple

from gateway.core.admission import Snapshot
from gateway.core.jobs.request import RequestClass
from gateway.core.queues.definitions import Budget, Queue
from gateway.core.vocabulary import OrderPolicy, QueueState, Reason

SECOND_US = 1_000_000
HOUR_US = 3600 * SECOND_US


class Job(NamedTuple):
    """One waiting job."""

    job_id: int
    queue: str
    class_index: int
    request: RequestClass
    priority: int
    submitted_us: int
    user: str
    rank: int
    eligible_us: int
    deadline_us: int
    expected_seconds: int

    @property
    def gpus(self) -> int:
        """GPUs of the whole gang."""
        return dict(self.request.total).get("gpu", 0)

    def waited_us(self, now_us: int) -> int:
        """How long it has waited, counted from when it could have started.

        Less than nothing where a clock was set back since: the order of two jobs may not depend on
        the moment at which they are compared.
        """
        return now_us - max(self.submitted_us, self.eligible_us)


def jobs_of(snapshot: Snapshot) -> list[Job]:
    """Give the waiting jobs by id."""
    waiting = snapshot.waiting
    columns = (
        waiting.job_id.tolist(),
        (snapshot.queues[index].name for index in waiting.queue.tolist()),
        waiting.request_class.tolist(),
        (waiting.classes[index] for index in waiting.request_class.tolist()),
        waiting.priority.tolist(),
        waiting.submitted_us.tolist(),
        (waiting.users[index] for index in waiting.user.tolist()),
        waiting.rank.tolist(),
        waiting.eligible_us.tolist(),
        waiting.deadline_us.tolist(),
        waiting.expected_seconds.tolist(),
    )
    return sorted(Job(*values) for values in zip(*columns, strict=True))


def first_bar(snapshot: Snapshot, queue: Queue, job: Job, now_us: int) -> Reason | None:
    """Give the first code that keeps a job out of this cycle, whatever fits."""
    if job.eligible_us > now_us:
        return Reason.NOT_BEFORE
    if queue.state is not QueueState.OPEN:
        return Reason.QUEUE_PAUSED
    if queue.budget and spent_us(snapshot, queue, queue.budget, now_us) >= (
        queue.budget.gpu_seconds * SECOND_US
    ):
        return Reason.OVER_BUDGET
    return Reason.OVER_CAP if is_over_cap(snapshot, queue, job, ()) else None


def window_of(budget: Budget, now_us: int) -> tuple[int, int]:
    """Give start and end of the budget's window at an instant."""
    length = budget.window_seconds * SECOND_US
    start = budget.starts_us + (now_us - budget.starts_us) // length * length
    return start, start + length


def spent_us(snapshot: Snapshot, queue: Queue, budget: Budget, now_us: int) -> int:
    """Give the GPU-microseconds held in the present window up to now."""
    start, _ = window_of(budget, now_us)
    return sum(
        span.gpus * max(0, min(span.until_us or now_us, now_us) - max(span.since_us, start))
        for span in snapshot.spans
        if span.queue == queue.name
    )


def is_over_cap(snapshot: Snapshot, queue: Queue, job: Job, admitted: tuple[Job, ...]) -> bool:
    """Whether a job would break a cap beside what is held and was admitted in this cycle."""
    caps = queue.caps
    running = [(h.user, h.jobs, h.gpus) for h in snapshot.held if h.queue == queue.name]
    running += [(each.user, 1, each.gpus) for each in admitted if each.queue == queue.name]
    mine = [entry for entry in running if entry[0] == job.user]
    gpus_after = sum(gpus for _, _, gpus in mine) + job.gpus
    return (
        job.gpus > caps.gpus_per_job
        or sum(jobs for _, jobs, _ in running) >= caps.running_jobs
        or sum(jobs for _, jobs, _ in mine) >= caps.user_running_jobs
        or (job.gpus > 0 and gpus_after > caps.user_gpus)
    )


def in_order(snapshot: Snapshot, queue: Queue, jobs: list[Job], now_us: int) -> list[Job]:
    """Give the line: by the queue's policy, then the older, then the lower id."""
    return sorted(
        jobs,
        key=lambda job: (*order_key(snapshot, queue, job, now_us), job.submitted_us, job.job_id),
    )


def order_key(snapshot: Snapshot, queue: Queue, job: Job, now_us: int) -> tuple[int, ...]:
    """Give a job's key at an instant; lower comes first."""
    if queue.order == OrderPolicy.FAIR_USERS:
        return decayed_usage(snapshot, queue, job), *_priority_key(queue, job, now_us)
    if queue.order == OrderPolicy.DEADLINE:
        return _deadline_key(job, now_us)
    if queue.order == OrderPolicy.SHORTEST:
        cost_us = job.expected_seconds * job.gpus * SECOND_US
        return int(job.expected_seconds == 0), cost_us - job.waited_us(now_us)
    return _priority_key(queue, job, now_us)


def _priority_key(queue: Queue, job: Job, now_us: int) -> tuple[int]:
    gained = min(queue.ageing.cap * HOUR_US, queue.ageing.per_hour * job.waited_us(now_us))
    return (-(job.priority * HOUR_US + gained),)


def _deadline_key(job: Job, now_us: int) -> tuple[int, int]:
    if not job.deadline_us:
        return 2, 0
    latest_us = latest_start_us(job)
    return int(latest_us < now_us), latest_us


def latest_start_us(job: Job) -> int:
    """Give the last instant at which a job can start and still meet its deadline."""
    return job.deadline_us - job.expected_seconds * SECOND_US


def decayed_usage(snapshot: Snapshot, queue: Queue, job: Job) -> int:
    """Give what the job's user used lately in this queue."""
    return sum(
        each.usage
        for each in snapshot.user_usage
        if (each.queue, each.user) == (queue.name, job.user)
    )


def crossings(queue: Queue, jobs: list[Job]) -> Iterator[int]:
    """Give every instant at which two jobs of a line may change places."""
    if queue.order == OrderPolicy.DEADLINE:
        yield from (latest_start_us(job) + 1 for job in jobs if job.deadline_us)
    if queue.order not in {OrderPolicy.PRIORITY, OrderPolicy.FAIR_USERS}:
        return
    if not queue.ageing.per_hour:
        return
    for one in jobs:
        for other in jobs:
            # One has reached the cap, the other is still gaining on it.
            gap_us = (one.priority - other.priority + queue.ageing.cap) * HOUR_US
            meets_us = gap_us // queue.ageing.per_hour + max(other.submitted_us, other.eligible_us)
            yield from (meets_us, meets_us + 1)
