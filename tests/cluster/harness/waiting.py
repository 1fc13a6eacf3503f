"""Waits for something to become true, with a deadline and a text that says what was missing."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
INTERVAL_SECONDS = 0.1


class Waited(AssertionError):
    """Something did not become true in time."""


def wait_until(
    probe: Callable[[], T | None],
    what: str,
    timeout_seconds: float = 30.0,
    *,
    swallow: tuple[type[Exception], ...] = (),
) -> T:
    """Call `probe` until it gives something true, and give that.

    Args:
        probe: asked every 100 ms.
        what: ends the sentence "waited N s for ...".
        timeout_seconds: how long to go on.
        swallow: errors of the probe that mean "not yet".

    Raises:
        Waited: nothing true came in time; the last error is its cause.
    """
    deadline = time.monotonic() + timeout_seconds
    last: Exception | None = None
    while True:
        try:
            found = probe()
        except swallow as error:
            found, last = None, error
        if found:
            return found
        if time.monotonic() > deadline:
            trouble = f" (last: {last})" if last else ""
            raise Waited(f"waited {timeout_seconds:g} s for {what}{trouble}") from last
        time.sleep(INTERVAL_SECONDS)
