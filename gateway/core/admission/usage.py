"""What live gangs hold, counted as caps, budgets and fair users look at it.

Counts of the moment by queue and user, and GPU time by queue. Nothing here judges.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from gateway.core.admission.types import Held, Span
from gateway.core.queues.budgets import Spans, is_exhausted, next_change_us
from gateway.core.queues.caps import LiveUse, over_cap
from gateway.core.queues.definitions import Queue


@dataclass(slots=True)
class Holdings:
    """Gangs and GPUs in use by (queue, user), and the spans that budgets count."""

    jobs: dict[tuple[str, str], int] = field(default_factory=dict)
    gpus: dict[tuple[str, str], int] = field(default_factory=dict)
    running: dict[str, int] = field(default_factory=dict)
    """Gangs by queue."""
    spans: dict[str, Spans] = field(default_factory=dict)

    def add(self, queue: str, user: str, *, jobs: int, gpus: int) -> None:
        """Count gangs in; negative numbers count them out again."""
        # Numbers that come back to 0 stay: whoever held something is likely to hold it again.
        key = (queue, user)
        self.jobs[key] = self.jobs.get(key, 0) + jobs
        self.gpus[key] = self.gpus.get(key, 0) + gpus
        # Kept by itself: summing users for each candidate would cost a pass its speed.
        self.running[queue] = self.running.get(queue, 0) + jobs

    def cap_in_the_way(self, queue: Queue, user: str, gpus: int) -> str:
        """Name the cap that keeps one more gang of so many GPUs from starting; empty for none."""
        key = (queue.name, user)
        use = LiveUse(
            running_jobs=self.running.get(queue.name, 0),
            user_running_jobs=self.jobs.get(key, 0),
            user_gpus=self.gpus.get(key, 0),
        )
        return over_cap(queue.caps, use, gpus)

    def is_over_budget(self, queue: Queue, now_us: int) -> bool:
        """Whether the queue has used up its GPU time of the present window."""
        return queue.budget is not None and is_exhausted(
            queue.budget, self.spans.get(queue.name, ()), now_us
        )

    def budget_change_us(self, queue: Queue, now_us: int) -> int | None:
        """Give when the queue's budget ends or begins anew, with nobody starting or ending."""
        if queue.budget is None:
            return None
        return next_change_us(queue.budget, self.spans.get(queue.name, ()), now_us)


def holdings_of(held: Iterable[Held], spans: Iterable[Span]) -> Holdings:
    """Count what a snapshot says."""
    holdings = Holdings()
    for each in held:
        holdings.add(each.queue, each.user, jobs=each.jobs, gpus=each.gpus)
    by_queue: dict[str, list[tuple[int, int, int]]] = {}
    for span in spans:
        by_queue.setdefault(span.queue, []).append((span.gpus, span.since_us, span.until_us))
    holdings.spans.update(by_queue)
    return holdings
