"""How long one call of the back end may still take, over all requests that it sends."""

import time
from collections.abc import Callable

from gateway.errors import ClusterUnreachable

LEAST_SECONDS = 0.05
"""Shorter than this no request is worth sending."""


class Deadline:
    """An instant on the monotonic clock; a lease is sure to outlive it."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin now."""
        # Monotonic: after a step of the wall clock a call could outlive the leader's lease.
        self._clock = clock
        self._end = clock() + seconds

    def left_seconds(self) -> float:
        """Give the time left; raises ClusterUnreachable when there is none."""
        left = self._end - self._clock()
        if left < LEAST_SECONDS:
            raise ClusterUnreachable(
                "the cluster did not answer in time",
                hint="nothing is lost; it is tried again by itself",
            )
        return left

    def earlier(self, seconds: float) -> "Deadline":
        """Give a deadline that ends this much before, so that something is left for afterwards."""
        return Deadline(self._end - self._clock() - seconds, self._clock)

    def is_near(self, seconds: float) -> bool:
        """Whether less than this is left."""
        return self._end - self._clock() < seconds
