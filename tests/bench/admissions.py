"""Kueue's baseline and large-scale shapes with every admission committed to a real database.

Measured is the whole cycle: read what changed, decide, reserve in batches, store why the others
wait. All jobs wait before it starts; what a cycle admitted ends after the next one, and neither the
enqueueing nor the ending is counted. Wall time, since the database is a part of it; beside it the
processor time of our own process for each admission.
"""

import time
from collections.abc import Iterator
from typing import NamedTuple

from gateway.service.context import Gateway
from gateway.service.cycle import run_cycle
from tests.bench._databases import fresh_databases
from tests.bench._tenants import a_gateway, add_tenants, cpu_nodes, end_until, newest_attempt
from tests.bench.decisions import BASELINE, LARGE, Shape
from tests.bench.figures import Figure, median_figure, repetitions

TARGET = 2_000
SHAPES = {"baseline": BASELINE, "large_scale": LARGE}
REPETITIONS = {"baseline": 5, "large_scale": 3}
EXCLUDED = "excluded: enqueueing, launching and ending the jobs"


class Sample(NamedTuple):
    """One drained shape."""

    admitted: int
    wall_seconds: float
    cpu_seconds: float


def run() -> Iterator[Figure]:
    """Give the figures of both databases; the plain name stands for the baseline shape."""
    for kind in ("sqlite", "postgresql"):
        for name, shape in SHAPES.items():
            suffix = "" if name == "baseline" else f"_{name}"
            samples = [_drained(kind, shape) for _ in range(repetitions(REPETITIONS[name]))]
            yield from figures_of(f"admissions.{kind}{suffix}", samples)


def figures_of(name: str, samples: list[Sample]) -> Iterator[Figure]:
    """Give the rate and the processor time of each admission."""
    rates = [each.admitted / each.wall_seconds for each in samples]
    yield median_figure(name, rates, "admissions/s", target=TARGET, peer_source=EXCLUDED)
    costs = [1_000 * each.cpu_seconds / each.admitted for each in samples]
    yield median_figure(f"{name}_cpu_ms", costs, "ms", higher_is_better=False)


def _drained(kind: str, shape: Shape) -> Sample:
    with fresh_databases(kind) as new_url:
        gateway = a_gateway(new_url(), cpu_nodes())
        try:
            jobs = add_tenants(gateway, shape)
            sample = drain(gateway)
        finally:
            gateway.database.close()
    assert sample.admitted == jobs
    return sample


def drain(gateway: Gateway) -> Sample:
    """Make cycles until nobody waits or runs; what a cycle admitted ends after the next one."""
    admitted, wall, cpu, before = 0, 0.0, 0.0, 0
    while True:
        started, started_cpu = time.perf_counter(), time.process_time()
        outcome = run_cycle(gateway)
        wall += time.perf_counter() - started
        cpu += time.process_time() - started_cpu
        assert outcome is not None
        newest, ended = newest_attempt(gateway), end_until(gateway.database, before)
        if not outcome.admitted and not ended and newest == before:
            return Sample(admitted, wall, cpu)
        admitted, before = admitted + outcome.admitted, newest
