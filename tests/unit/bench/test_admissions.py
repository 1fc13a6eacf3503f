"""The drain of the admissions benchmark: everybody is admitted once, and its figures are right."""

from pathlib import Path

import pytest

from tests.bench._tenants import a_gateway, add_tenants, cpu_nodes
from tests.bench.admissions import Sample, drain, figures_of
from tests.bench.decisions import Kind, Shape
from tests.bench.figures import repetitions


def test_a_drain_admits_every_job_once_though_quota_lets_few_in_at_a_time(tmp_path: Path) -> None:
    shape = Shape(1, 2, (Kind(3, 20_000, 200), Kind(2, 1_000, 50)))
    gateway = a_gateway(f"sqlite:///{tmp_path}/gateway.db", cpu_nodes(2))
    try:
        assert add_tenants(gateway, shape) == 10
        sample = drain(gateway)
    finally:
        gateway.database.close()
    assert sample.admitted == 10
    assert sample.wall_seconds > 0


def test_rates_are_medians_and_the_cost_is_processor_time_for_each_admission() -> None:
    samples = [Sample(100, 1.0, 0.2), Sample(100, 0.5, 0.1), Sample(100, 2.0, 0.3)]
    rate, cost = figures_of("admissions.x", samples)
    assert (rate.name, rate.value, rate.samples) == ("admissions.x", 100.0, (100.0, 200.0, 50.0))
    assert (cost.name, cost.value, cost.higher_is_better) == ("admissions.x_cpu_ms", 2.0, False)
    assert rate.target == 2_000


def test_a_variable_says_how_often_to_measure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BENCH_REPETITIONS", raising=False)
    assert repetitions(5) == 5
    monkeypatch.setenv("BENCH_REPETITIONS", "1")
    assert repetitions(5) == 1
