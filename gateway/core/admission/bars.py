"""What bars one job whatever fits, and what would have to be otherwise so that nothing does.

Its time, a pause, the budget, caps: each in words and in numbers, with the queue as it would be
then. Whether the job fits afterwards is not asked here.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from gateway.core.admission.state import State
from gateway.core.admission.unblock import NOTHING, Lift, Unblock
from gateway.core.queues.budgets import SECOND_US, is_exhausted, spent_gpu_us, window_of
from gateway.core.queues.caps import LiveUse, over_cap
from gateway.core.queues.definitions import Queue
from gateway.core.resources.words import counted, instant_words
from gateway.core.vocabulary import LiftKind, QueueState


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiter:
    """A job that waits, as far as bars ask."""

    queue: str
    user: str
    gpus: int
    eligible_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Unbarred:
    """One way in which nothing bars a job any more."""

    queue: Queue
    """As it is then."""
    at_us: int
    unblock: Unblock
    """What makes it so; nothing if nothing does bar it."""


def unbarred(state: State, waiter: Waiter, queue: Queue, now_us: int) -> tuple[Unbarred, ...]:
    """Give the ways to a state in which the job may be tried, at least one.

    Args:
        state: what is held now; assumed to stay so until the job's time has come.
        waiter: the job.
        queue: its queue as it is at that time.
        now_us: the present instant.
    """
    told, at_us = NOTHING, max(now_us, waiter.eligible_us)
    if at_us > now_us:
        told = told.also(_until(at_us))
    if queue.state is not QueueState.OPEN:
        lift = Lift(kind=LiftKind.RESUME, target=queue.name)
        told = told.also(Unblock(f"queue {queue.name} to be resumed", (lift,)))
        queue = replace(queue, state=QueueState.OPEN)
    queue, raised = _with_caps(state, waiter, queue)
    told = told.also(raised)
    return tuple(_within_budget(state, Unbarred(queue=queue, at_us=at_us, unblock=told)))


def cap_words(cap: str, queue: Queue, user: str, gpus: tuple[int, int]) -> str:
    """Say which cap keeps a job out; `gpus` are those its user holds and those it asks for."""
    held, asked = gpus
    limit, where = getattr(queue.caps, cap), f"queue {queue.name}"
    if cap == "gpus_per_job":
        return f"asks for {counted(asked, 'GPU')}; {where} takes {limit} in one job"
    if cap == "running_jobs":
        return f"{where} is at its cap of {counted(limit, 'running job')}"
    if cap == "user_running_jobs":
        return f"{user} has {counted(limit, 'job')} running in {where}, as many as one user may"
    held_words = f"{user} holds {counted(held, 'GPU')} in {where}, where one user may hold {limit}"
    return f"{held_words}; this job asks for {asked}"


def _until(at_us: int) -> Unblock:
    return Unblock(
        f"the time to be {instant_words(at_us)}", (Lift(kind=LiftKind.TIME, amount=at_us),)
    )


def _with_caps(state: State, waiter: Waiter, queue: Queue) -> tuple[Queue, Unblock]:
    """Raise every cap that the job would break, as little as will do."""
    held, key = state.holdings, (queue.name, waiter.user)
    use = LiveUse(
        running_jobs=held.running.get(queue.name, 0),
        user_running_jobs=held.jobs.get(key, 0),
        user_gpus=held.gpus.get(key, 0),
    )
    needed = {
        "gpus_per_job": waiter.gpus,
        "running_jobs": use.running_jobs + 1,
        "user_running_jobs": use.user_running_jobs + 1,
        "user_gpus": use.user_gpus + waiter.gpus,
    }
    told = NOTHING
    # Each round lifts one of four caps far enough for this job, so there are four at most.
    while cap := over_cap(queue.caps, use, waiter.gpus):
        words = f"cap {cap} of queue {queue.name} to be {needed[cap]} at least"
        lift = Lift(kind=LiftKind.CAP, target=queue.name, word=cap, amount=needed[cap])
        told = told.also(Unblock(words, (lift,)))
        queue = replace(queue, caps=replace(queue.caps, **{cap: needed[cap]}))
    return queue, told


def _within_budget(state: State, way: Unbarred) -> Iterator[Unbarred]:
    """Give the way itself if the budget lasts, else a larger budget, or the next window."""
    queue, budget = way.queue, way.queue.budget
    spans = state.holdings.spans.get(queue.name, ())
    if budget is None or not is_exhausted(budget, spans, way.at_us):
        yield way
        return
    # One more than was spent, because a budget that is used up to the last second is exhausted.
    seconds = spent_gpu_us(budget, spans, way.at_us) // SECOND_US + 1
    words = f"the budget of queue {queue.name} to be {seconds} GPU-seconds a window at least"
    lift = Lift(kind=LiftKind.BUDGET, target=queue.name, amount=seconds)
    yield replace(
        way,
        queue=replace(queue, budget=replace(budget, gpu_seconds=seconds)),
        unblock=way.unblock.also(Unblock(words, (lift,))),
    )
    _, next_us = window_of(budget, way.at_us)
    # A set with two instants would contradict itself.
    waits = any(lift.kind is LiftKind.TIME for lift in way.unblock.lifts)
    if not waits and not is_exhausted(budget, spans, next_us):
        yield replace(way, at_us=next_us, unblock=way.unblock.also(_until(next_us)))
