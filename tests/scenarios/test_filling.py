"""How a cohort is filled, by the engine and by the naive planner."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from gateway.core.admission import Policies, plan_cycle
from tests.oracle import naive_plan
from tests.scenarios.reading import Entry, scenarios_in, snapshot_of

SCENARIOS = dict(scenarios_in(Path(__file__).parent / "filling"))
BUDGET = 10_000
NODES = [{"cpu": 1000, "gpus": 8, "count": 8}]


def unit_jobs(scenario: Entry) -> list[dict[str, Any]]:
    """Give jobs of one unit of all that a queue asks for, queue by queue in turn."""
    left = {queue: max(asks.values()) for queue, asks in scenario["asks"].items()}
    jobs = []
    for number in range(max(left.values())):
        for queue, asks in scenario["asks"].items():
            if number < left[queue]:
                units = dict.fromkeys(asks, 1)
                jobs.append({"name": f"{queue}-{number}", "queue": queue, **units})
    return jobs


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_cohort_is_filled_as_the_scenario_says(name: str) -> None:
    scenario = SCENARIOS[name]
    jobs = unit_jobs(scenario)
    snapshot = snapshot_of({"nodes": NODES, **scenario, "incoming": jobs})
    plan = plan_cycle(snapshot, Policies(), now_us=0, budget=BUDGET)
    naive = naive_plan(snapshot, Policies(), now_us=0, budget=BUDGET)
    filled = Counter(jobs[each.job_id - 1]["queue"] for each in plan.admits)
    assert filled == scenario["filled"]
    assert [each.job_id for each in plan.admits] == [job for job, _ in naive.admits]
