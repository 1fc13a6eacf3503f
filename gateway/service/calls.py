"""Whether one more call is made to the cluster: while the lease outlives it, and it is answered.

Made anew for each pass, which forgets what an earlier one met.
"""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from gateway.service.context import Gateway

Item = TypeVar("Item")
Answer = TypeVar("Answer")
MOST_OUTAGES = 3
"""Calls in a row that may fail before a pass asks whether the cluster answers at all."""


def may_call(gateway: Gateway) -> bool:
    """Whether the lease surely outlives one more call to the cluster."""
    return gateway.leadership.outlives(gateway.settings.cluster_call_seconds)


@dataclass(slots=True)
class Calls:
    """The calls of one pass."""

    gateway: Gateway
    _outages: int = 0
    _is_cut_off: bool = False

    def each(self, call: Callable[[Item], Answer | None], items: Iterable[Item]) -> list[Answer]:
        """Make a call for each; gives in their order what came of them, leaving out None.

        Several at a time where the back end takes that: a cluster answers in milliseconds, and one
        after the other a hundred gangs would wait for seconds.
        """
        wanted = list(items)
        at_once = min(self.gateway.backend.calls_at_once, len(wanted))
        if at_once <= 1:
            found = list(map(call, wanted))
        else:
            with ThreadPoolExecutor(at_once, thread_name_prefix="gateway-calls") as callers:
                found = list(callers.map(call, wanted))
        return [answer for answer in found if answer is not None]

    def answered(self) -> None:
        """Note that the cluster answered a call."""
        self._outages = 0

    def failed(self) -> None:
        """Note that it did not."""
        self._outages += 1

    def are_over(self) -> bool:
        """Whether no more calls are made in this pass."""
        # Each call to a dead cluster costs its timeout, and the lease goes on running down; so it
        # is asked once, and what it said holds for the rest of the pass.
        if self._outages >= MOST_OUTAGES and not self._is_cut_off:
            self._is_cut_off = not self.gateway.backend.is_reachable()
        return self._is_cut_off or not may_call(self.gateway)
