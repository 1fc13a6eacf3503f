"""The ticker: a scheduler for the steady pace, and threads for what must not wait for it.

One decides after wake-ups, one moves gangs, and one hears other replicas.
"""

import logging
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import structlog
from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.schedulers.background import BackgroundScheduler

from gateway.db.notify import Listener, announce
from gateway.errors import DatabaseUnavailable
from gateway.service.context import Gateway
from gateway.service.leading import stop_leading
from gateway.ticker.rounds import Rounds

log = structlog.get_logger()
# A tick that comes while its last round still goes on is meant to be skipped, and is no news.
logging.getLogger("apscheduler").setLevel(logging.ERROR)
LEAST_PAUSE_SECONDS = 0.02
"""Between two answers to wake-ups, so that a burst of commits is answered by few cycles."""
RESTS_PER_WORK = 9
"""While commits come without end and move nobody, deciding takes a tenth of the time."""
LISTEN_SECONDS = 1.0
RECONNECT_SECONDS = 2.0
STOP_SECONDS = 10.0
LEASE_RENEWALS = 3
"""Renewals within one lease; two may be lost."""
USAGE_SECONDS = 60.0
"""Between two counts of what running gangs use; a half-life is a minute at least."""
TIDY_EVERY = 10
"""Launch paces between two looks for finished objects."""


class Ticker:
    """Keeps one gateway moving until it is stopped."""

    def __init__(self, gateway: Gateway) -> None:
        """Prepare; nothing runs before `start`."""
        self.gateway = gateway
        self.rounds = Rounds(gateway)
        self._stopping = threading.Event()
        self._gangs_due = threading.Event()
        self._threads: list[threading.Thread] = []
        self._scheduler = BackgroundScheduler(
            # More threads than kinds of rounds, so that one that hangs at the cluster delays no
            # other. Late ticks are made good once (`coalesce`) and however late they are (no grace
            # time): a tick that was dropped after a pause of the machine would cost a whole pace.
            executors={"default": ThreadPoolExecutor(8)},
            job_defaults={"coalesce": True, "max_instances": 1, "misfire_grace_time": None},
            timezone=UTC,
        )

    def start(self) -> None:
        """Take the lease if it is free and begin to tick."""
        settings = self.gateway.settings
        # Before anything ticks: a single server leads from its first cycle on.
        self.rounds.lease()
        self._every(settings.lease_seconds / LEASE_RENEWALS, self.rounds.lease)
        self._every(settings.inventory_seconds, self.rounds.inventory, delay_seconds=0)
        self._every(settings.cycle_seconds, self._cycle)
        self._every(settings.launch_seconds, self._gangs_due.set)
        self._every(settings.launch_seconds * TIDY_EVERY, self.rounds.tidy)
        self._every(USAGE_SECONDS, self.rounds.usage)
        self._scheduler.start()
        self._spawn("gateway-wake", self._answer_wakes)
        self._spawn("gateway-gangs", self._move_gangs)
        if not self.gateway.database.is_sqlite and not settings.database_has_pooler:
            self._spawn("gateway-listen", self._listen)
        # What waited through a restart is decided on now, and not after the first pace.
        self.gateway.wake.set()

    def stop(self) -> None:
        """Finish the rounds under way, stop, and give the lease to another replica."""
        self._stopping.set()
        self.gateway.wake.hurry()
        self._gangs_due.set()
        if self._scheduler.running:
            self._scheduler.shutdown(wait=True)
        for thread in self._threads:
            thread.join(STOP_SECONDS)
        # Last of all: rounds still under way would be refused by the next leader's epoch.
        try:
            stop_leading(self.gateway)
        except DatabaseUnavailable as error:
            log.warning("lease_not_released", detail=error.detail)

    def _every(
        self, seconds: float, work: Callable[[], object], *, delay_seconds: float | None = None
    ) -> None:
        delay = seconds if delay_seconds is None else delay_seconds
        first = datetime.now(UTC) + timedelta(seconds=delay)
        self._scheduler.add_job(work, "interval", seconds=seconds, next_run_time=first)

    def _spawn(self, name: str, work: Callable[[], None]) -> None:
        thread = threading.Thread(target=work, name=name, daemon=True)
        thread.start()
        self._threads.append(thread)

    def _answer_wakes(self) -> None:
        """Decide right after commits that may have unblocked something."""
        while not self._stopping.is_set():
            asked = self.gateway.wake.wait(self._patience_seconds())
            if self._stopping.is_set() or not (asked or self._is_due()):
                continue
            started = time.monotonic()
            # The flag is down again since `wait`, so a commit during this work wakes once more.
            has_moved = self._decide()
            self._rest_after(time.monotonic() - started, has_moved=has_moved)

    def _decide(self) -> bool:
        """Decide, or tell who leads; True when somebody came forward by it."""
        if self.gateway.leadership.epoch is None:
            self._announce()
            return False
        return self._cycle()

    def _cycle(self) -> bool:
        """Decide, and have launched who was admitted; True when somebody was."""
        is_admitted = self.rounds.cycle()
        if is_admitted:
            self._gangs_due.set()
        return is_admitted

    def _move_gangs(self) -> None:
        """Launch and look at gangs, at a steady pace and right after admissions.

        Beside the thread that decides, so that a cluster that hangs keeps nobody from being
        admitted, and what ended is freed while the next ones are chosen.
        """
        while not self._stopping.is_set():
            self._gangs_due.wait()
            # Cleared before the work, so that an admission during it is launched right after.
            self._gangs_due.clear()
            if not self._stopping.is_set():
                self.rounds.gangs()

    def _patience_seconds(self) -> float:
        """Give how long to wait for a wake-up: until time alone may change a decision."""
        if self.rounds.due_us is None:
            return LISTEN_SECONDS
        left_us = self.rounds.due_us - self.gateway.clock.now_us()
        return min(LISTEN_SECONDS, max(0, left_us) / 1_000_000)

    def _is_due(self) -> bool:
        due_us = self.rounds.due_us
        return due_us is not None and due_us <= self.gateway.clock.now_us()

    def _rest_after(self, seconds: float, *, has_moved: bool) -> None:
        self._stopping.wait(LEAST_PAUSE_SECONDS)
        # Room that comes free is somebody's turn: submits that change nothing must not delay it.
        self.gateway.wake.rest(
            self._pause_after(seconds, has_moved=has_moved) - LEAST_PAUSE_SECONDS
        )

    def _pause_after(self, seconds: float, *, has_moved: bool) -> float:
        """Give how long to rest from deciding, so that requests get most of the processor."""
        # Whoever finishes frees devices for the next: work that gets somewhere is not put off.
        if has_moved:
            return LEAST_PAUSE_SECONDS
        rest = max(LEAST_PAUSE_SECONDS, seconds * RESTS_PER_WORK)
        return min(rest, self.gateway.settings.cycle_seconds)

    def _announce(self) -> None:
        """Hand a wake-up on to the replica that leads."""
        try:
            announce(self.gateway.database)
        except DatabaseUnavailable as error:
            log.warning("wake_up_not_announced", detail=error.detail)

    def _listen(self) -> None:
        """Hear the wake-ups of other replicas; a broken line is mended, ticks go on meanwhile."""
        while not self._stopping.is_set():
            try:
                with Listener(self.gateway.settings.url) as listener:
                    while not self._stopping.is_set():
                        heard = listener.wait(LISTEN_SECONDS)
                        # Handed on by a follower it would come back as its own announcement.
                        if heard and self.gateway.leadership.epoch is not None:
                            self.gateway.wake.set()
            except DatabaseUnavailable as error:
                log.warning("wake_up_line_broken", detail=error.detail)
                self._stopping.wait(RECONNECT_SECONDS)
