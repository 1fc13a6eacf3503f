"""Each scenario, by the engine and by the naive planner."""

from pathlib import Path

import pytest

from gateway.core.admission import Admit, Policies, plan_cycle
from gateway.core.admission.types import NodeHold
from tests.oracle import naive_plan
from tests.scenarios.reading import Entry, scenarios_in, seconds, snapshot_of

SCENARIOS = dict(scenarios_in(Path(__file__).parent))
BUDGET = 1000
Outcome = tuple[list[str], dict[str, str]]


def named(scenario: Entry, admits: list[int], reasons: dict[int, str]) -> Outcome:
    names = dict(enumerate((each["name"] for each in scenario["incoming"]), 1))
    return [names[job] for job in admits], {names[job]: why for job, why in reasons.items()}


def expected(scenario: Entry) -> Outcome:
    ours = scenario["ours"]
    return list(ours["admitted"]), dict(ours.get("waiting", {}))


def flavors_of(admit: Admit) -> str:
    return "+".join(sorted({charge.flavor for charge in admit.charges}))


def holders_of(scenario: Entry, holds: tuple[NodeHold, ...]) -> list[dict[str, object]]:
    """Give holds as the scenarios write them."""
    names = [each["name"] for each in scenario["incoming"]]
    fleet = snapshot_of(scenario).fleet
    nodes = dict(zip(fleet.node_id.tolist(), fleet.names, strict=True))
    return [
        {"by": names[hold.job_id - 1], "nodes": [nodes[node_id] for node_id in hold.node_ids]}
        for hold in holds
    ]


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_engine_decides_as_the_scenario_says(name: str) -> None:
    scenario = SCENARIOS[name]
    plan = plan_cycle(
        snapshot_of(scenario), Policies(), now_us=seconds(scenario, "now"), budget=BUDGET
    )
    reasons = {hold.job_id: hold.reason.value for hold in plan.holds}
    assert named(scenario, [each.job_id for each in plan.admits], reasons) == expected(scenario)
    names = [each["name"] for each in scenario["incoming"]]
    flavors = {names[each.job_id - 1]: flavors_of(each) for each in plan.admits}
    assert {**flavors, **scenario["ours"].get("flavors", {})} == flavors
    holders = holders_of(scenario, plan.node_holds)
    assert scenario["ours"].get("held", holders) == holders


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_naive_planner_decides_as_the_scenario_says(name: str) -> None:
    scenario = SCENARIOS[name]
    plan = naive_plan(
        snapshot_of(scenario), Policies(), now_us=seconds(scenario, "now"), budget=BUDGET
    )
    reasons = {job: reason.value for job, reason in plan.reasons.items()}
    assert named(scenario, [job for job, _ in plan.admits], reasons) == expected(scenario)
    holders = holders_of(scenario, plan.node_holds)
    assert scenario["ours"].get("held", holders) == holders


def test_where_a_peer_decides_otherwise_the_scenario_says_why() -> None:
    differing = [each for each in SCENARIOS.values() if "peer" in each]
    assert differing
    assert all(each["why"] and each["peer"] != each["ours"] for each in differing)
