"""The rounds a ticker makes, each of which survives whatever it meets.

A round that fails is logged and forgotten; the next tick tries again. Two rounds that decide never
overlap, nor do two that talk to the cluster about gangs, so the steps of one job stay in order.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import structlog

from gateway.errors import StaleLeader, Unavailable
from gateway.service.context import Gateway
from gateway.service.cycle import run_cycle
from gateway.service.inventory import sync
from gateway.service.launching import launch_due
from gateway.service.leading import keep_leading
from gateway.service.reconciling import reconcile_due
from gateway.service.stopping import delete_finished
from gateway.service.user_usage import accrue_usage

log = structlog.get_logger()
MOST_CYCLES_AT_ONCE = 5
"""Cycles that follow one another when each asks for the next."""


@dataclass(slots=True)
class Pulse:
    """When a round last ended well, by the monotonic clock, and how long it took."""

    ended_at: float = 0.0
    seconds: float = 0.0
    failures: int = 0
    """Rounds in a row that failed."""


@dataclass(slots=True)
class Rounds:
    """The rounds of one gateway."""

    gateway: Gateway
    pulses: dict[str, Pulse] = field(default_factory=dict)
    due_us: int | None = None
    """When the next cycle is due even if nothing but time changes; by the gateway's clock."""
    _deciding: threading.Lock = field(default_factory=threading.Lock)
    _moving: threading.Lock = field(default_factory=threading.Lock)

    def lease(self) -> None:
        """Take or keep the lease."""
        self._make("lease", lambda: keep_leading(self.gateway))

    def inventory(self) -> None:
        """Read the fleet."""
        self._make("inventory", lambda: sync(self.gateway))

    def cycle(self) -> bool:
        """Decide, again at once while a cycle asks for it; True when somebody was admitted."""
        with self._deciding:
            return bool(self._make("cycle", self._cycle))

    def gangs(self) -> bool:
        """Launch what is reserved and look at what runs; True when anything moved."""
        with self._moving:
            launched = self._make("launch", lambda: self._leads() and launch_due(self.gateway))
            seen = self._make("reconcile", lambda: self._leads() and reconcile_due(self.gateway))
        return bool(launched or seen)

    def tidy(self) -> None:
        """Remove finished objects that were kept long enough."""
        with self._moving:
            self._make("tidy", lambda: self._leads() and delete_finished(self.gateway))

    def usage(self) -> None:
        """Count what running gangs use beyond what they counted at the start."""
        # Not while gangs are freed, which count what is left for the last time.
        with self._moving:
            self._make("usage", lambda: self._leads() and accrue_usage(self.gateway))

    def _leads(self) -> bool:
        return self.gateway.leadership.epoch is not None

    def _cycle(self) -> int:
        """Give how many were admitted."""
        admitted = 0
        # A cycle that fails is made again at the steady pace, and not at once, again and again.
        self.due_us = None
        for _ in range(MOST_CYCLES_AT_ONCE):
            outcome = run_cycle(self.gateway)
            self.due_us = outcome.next_wake_at_us if outcome else None
            admitted += outcome.admitted if outcome else 0
            if outcome is None or not outcome.is_dirty:
                break
        return admitted

    def _make(self, name: str, work: Callable[[], object]) -> object:
        """Make one round and note how it went; gives what it gave, nothing it raises gets out."""
        pulse = self.pulses.setdefault(name, Pulse())
        started, result = time.monotonic(), None
        try:
            result = work()
        except StaleLeader:
            # Another replica leads already. Without an epoch nothing is decided or launched here
            # until the lease is won again.
            self.gateway.leadership.epoch = None
            log.warning("leadership_lost", round=name)
        except Unavailable as error:
            pulse.failures += 1
            log.warning("round_put_off", round=name, code=error.code, detail=error.detail)
        except Exception:
            pulse.failures += 1
            log.exception("round_failed", round=name)
        else:
            pulse.failures = 0
            pulse.ended_at = time.monotonic()
            pulse.seconds = pulse.ended_at - started
        return result
