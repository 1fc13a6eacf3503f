"""What the specification asks for and the engine does not do yet; empty when it does all.

Scenarios name what they need and are expected to fail until it is built. Random states are stripped
of it, so that the rest can be compared today.
"""

from collections.abc import Callable
from dataclasses import replace

from gateway.core.admission import Snapshot
from gateway.core.queues.definitions import Ageing, Caps, Cohort, Queue, Quota
from gateway.core.vocabulary import UNLIMITED, Blocking, OrderPolicy, WhenCanBorrow

NOT_BUILT: frozenset[str] = frozenset()

PLAIN_QUEUE: dict[str, Callable[[Queue], Queue]] = {
    "ageing": lambda queue: replace(queue, ageing=Ageing()),
    "budget": lambda queue: replace(queue, budget=None),
    "caps": lambda queue: replace(queue, caps=Caps()),
    "dated": lambda queue: replace(queue, changes=()),
    "lending": lambda queue: replace(queue, quotas=all_lent(queue)),
    "order": lambda queue: replace(queue, order=OrderPolicy.PRIORITY),
    # Who owns nothing is never within its nominal quota, and protects nothing.
    "protection": lambda queue: replace(queue, quotas=()),
    "strict": lambda queue: replace(queue, blocking=Blocking.BEST_EFFORT),
    "when_can_borrow": lambda queue: replace(queue, when_can_borrow=WhenCanBorrow.BORROW),
}


def as_built(snapshot: Snapshot, missing: frozenset[str] = NOT_BUILT) -> Snapshot:
    """Give the state without what depends on missing parts of the engine."""
    waiting = snapshot.waiting
    if "rank" in missing:
        waiting = replace(waiting, rank=waiting.rank * 0)
    if "not_before" in missing:
        waiting = replace(waiting, eligible_us=waiting.eligible_us * 0)
    return replace(
        snapshot,
        waiting=waiting,
        queues=tuple(_plain_queue(queue, missing) for queue in snapshot.queues),
        cohorts=tuple(_plain_cohort(cohort, missing) for cohort in snapshot.cohorts),
    )


def all_lent(owner: Queue | Cohort) -> tuple[Quota, ...]:
    """Give an owner's rows without lending limits."""
    return tuple(replace(quota, lending_limit=UNLIMITED) for quota in owner.quotas)


def _plain_queue(queue: Queue, missing: frozenset[str]) -> Queue:
    for name in sorted(missing & PLAIN_QUEUE.keys()):
        queue = PLAIN_QUEUE[name](queue)
    return queue


def _plain_cohort(cohort: Cohort, missing: frozenset[str]) -> Cohort:
    if "dated" in missing:
        cohort = replace(cohort, changes=())
    return replace(cohort, quotas=all_lent(cohort)) if "lending" in missing else cohort
