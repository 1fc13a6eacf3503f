"""GPU time against a queue's budget: what is spent in the present window, and when that changes.

Whole GPU-microseconds throughout, so that a budget ends at the same instant wherever it is asked.
Which gangs held what and when is told by the caller; nothing here reads it.
"""

from collections.abc import Iterable, Sequence

from gateway.core.queues.definitions import Budget

Spans = Sequence[tuple[int, int, int]]
"""(GPUs, since, until) in microseconds since the epoch; until 0 while they are held."""

SECOND_US = 1_000_000


def window_of(budget: Budget, now_us: int) -> tuple[int, int]:
    """Give the start of the window that an instant lies in, and of the one after it."""
    length = budget.window_seconds * SECOND_US
    # Floor division, so that windows reach back before the one that was named.
    start = now_us - (now_us - budget.starts_us) % length
    return start, start + length


def spent_gpu_us(budget: Budget, spans: Spans, now_us: int) -> int:
    """Give the GPU-microseconds held so far in the present window."""
    start, _ = window_of(budget, now_us)
    return sum(
        # What was held before this window counts in the window in which it was held.
        # Spans are cut at both ends of the window: a gang that runs over the turn pays in both.
        gpus * max(0, min(until_us or now_us, now_us) - max(since_us, start))
        for gpus, since_us, until_us in spans
    )


def is_exhausted(budget: Budget, spans: Spans, now_us: int) -> bool:
    """Whether nothing is left in the present window."""
    return spent_gpu_us(budget, spans, now_us) >= budget.gpu_seconds * SECOND_US


def next_change_us(budget: Budget, spans: Spans, now_us: int) -> int | None:
    """Give when the budget may become exhausted or refilled, with no gang starting or ending.

    Never later than it happens; None when neither will ever happen.
    """
    left = budget.gpu_seconds * SECOND_US - spent_gpu_us(budget, spans, now_us)
    _, end_us = window_of(budget, now_us)
    if left <= 0:
        return end_us
    rate = _gpus_held(spans, now_us)
    if not rate:
        return None
    # Rounded up: one microsecond before, a fraction of one is still left.
    return min(end_us, now_us - (-left // rate))


def _gpus_held(spans: Iterable[tuple[int, int, int]], now_us: int) -> int:
    return sum(gpus for gpus, _, until_us in spans if not until_us or until_us > now_us)
