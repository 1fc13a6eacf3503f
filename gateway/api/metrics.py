"""Figures for Prometheus, read from the database at scrape time and kept for a moment.

They come from rows, so every replica tells the same and nothing drifts. Names follow Kueue's
families where the meaning is equal. Labels name queues, flavors and reasons, never users or jobs.
"""

import threading
import time
from collections.abc import Iterable

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from gateway.core.vocabulary import JobState
from gateway.db import figures
from gateway.db.engine import Connection
from gateway.db.jobs import count_by_state
from gateway.service.context import Gateway

PREFIX = "training_gateway_"
KEEP_SECONDS = 1.5
"""Scrapes within this time share one reading."""
RESTS_PER_READING = 9
"""With a million waiting jobs a reading takes seconds; scrapes get a tenth of the time at most."""
Counts = Iterable[tuple[tuple[str, ...], float]]


class Metrics(Collector):
    """Collects and renders the gateway's figures."""

    def __init__(self, gateway: Gateway) -> None:
        """Read from this gateway's database."""
        self._gateway = gateway
        self._lock = threading.Lock()
        self._kept: list[Metric] = []
        self._read_at = float("-inf")
        self._took_seconds = 0.0
        # A registry of its own: the default one is global, and holds figures of the Python process.
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(self)

    def render(self, accept: str) -> tuple[bytes, str]:
        """Give the exposition and its media type; raises DatabaseUnavailable."""
        encode, media_type = choose_encoder(accept)
        return encode(self._registry), media_type

    def describe(self) -> Iterable[Metric]:
        """Give nothing: names are not checked before the database is there."""
        return ()

    def collect(self) -> Iterable[Metric]:
        """Give every family, read at most once in a while."""
        with self._lock:
            started = time.monotonic()
            if started - self._read_at > max(KEEP_SECONDS, self._took_seconds * RESTS_PER_READING):
                with self._gateway.database.read() as connection:
                    self._kept = [*_queue_figures(connection, self._gateway.clock.now_us())]
                    self._kept += [*_fleet_figures(connection), *self._own_figures(connection)]
                self._read_at = time.monotonic()
                self._took_seconds = self._read_at - started
            return self._kept

    def _own_figures(self, connection: Connection) -> Iterable[Metric]:
        counted = figures.counters(connection)
        yield _counter("cycles", "Admission cycles that were run.", counted["cycles"])
        yield _counter("submitted_jobs", "Jobs ever submitted.", counted["jobs"])
        yield _counter("reservations", "Reservations ever made.", counted["attempts"])
        yield _gauge("leader_epoch", "Epoch of the present leader.", (), [((), counted["epoch"])])
        # The only figure that is this process's own: summed over replicas it should be 1.
        is_leader = self._gateway.leadership.epoch is not None
        yield _gauge("is_leader", "Whether this process leads.", (), [((), is_leader)])


def _queue_figures(connection: Connection, now_us: int) -> Iterable[Metric]:
    by_state = count_by_state(connection)
    pending = {(queue,): n for (queue, state), n in by_state.items() if state == JobState.PENDING}
    by_reason: dict[tuple[str, ...], int] = {}
    ages: dict[tuple[str, ...], float] = {}
    for each in figures.waiting(connection):
        key = (each.queue, each.reason)
        by_reason[key] = by_reason.get(key, 0) + each.number
        if each.state == JobState.PENDING:
            # Clocks of two replicas differ a little, and an age is never negative.
            age = max(0, now_us - each.oldest_us) / 1_000_000
            ages[each.queue,] = max(age, ages.get((each.queue,), 0))
    quota = ("owner_kind", "owner", "flavor", "resource")
    used = ("queue", "flavor", "resource")
    yield _gauge("pending", "Jobs that wait.", ("queue",), pending.items())
    yield _gauge("jobs", "Live jobs by state.", ("queue", "state"), by_state.items())
    yield _gauge("unadmitted", "Waiting jobs by reason.", ("queue", "reason"), by_reason.items())
    yield _gauge(
        "oldest_pending_seconds", "Age of the longest waiting job.", ("queue",), ages.items()
    )
    nominal = figures.nominal_quotas(connection)
    usage = figures.live_usage(connection)
    yield _gauge("nominal_quota", "Guaranteed, in base units.", quota, nominal.items())
    yield _gauge("resource_usage", "In use, in base units.", used, usage.items())


def _fleet_figures(connection: Connection) -> Iterable[Metric]:
    held = {(phase,): n for phase, n in figures.attempts_by_phase(connection).items()}
    yield _gauge(
        "devices",
        "Devices by state.",
        ("kind", "state"),
        figures.devices_by_state(connection).items(),
    )
    yield _gauge(
        "reservations_held", "Live reservations by launch phase.", ("phase",), held.items()
    )


def _gauge(name: str, text: str, labels: tuple[str, ...], values: Counts) -> Metric:
    family = GaugeMetricFamily(PREFIX + name, text, labels=labels)
    for key, value in values:
        family.add_metric(key, value)
    return family


def _counter(name: str, text: str, value: float) -> Metric:
    return CounterMetricFamily(PREFIX + name, text, value=value)
