"""Gangs on the Lingjun cluster against the solver's best; a sample, the bench judges 1,000."""

from collections.abc import Sequence
from functools import cache
from statistics import mean

import numpy as np
import pytest

from gateway.core.admission import Policies, plan_cycle
from gateway.core.jobs.request import RequestClass
from gateway.core.resources import GPU
from tests.builders import a_node
from tests.optimality.filling import can_stand
from tests.optimality.instances import fleet_with
from tests.packing.lingjun import SWITCH, a_gang_of, an_instance
from tests.packing.optimum import Outcome, Packing, filled_in_order, judged
from tests.packing.traces import itp_gang_sizes, lingjun_hosts
from tests.properties.strategies import Dice

SEEDS = range(120)


@cache
def outcomes(policy: str) -> tuple[Outcome, ...]:
    found = []
    for seed in SEEDS:
        snapshot = an_instance(seed)
        plan = plan_cycle(snapshot, Policies(placement=policy), now_us=0, budget=100_000)
        found.append(judged(snapshot, plan))
    return tuple(found)


def share_too_wide(found: Sequence[Outcome]) -> float:
    return sum(each.too_wide for each in found) / sum(each.wide for each in found)


@pytest.mark.parametrize("policy", ["fragmentation", "pack"])
def test_as_many_gpus_are_given_away_as_can_be_in_the_order_of_the_line(policy: str) -> None:
    short = sorted(each.shortfall for each in outcomes(policy))
    assert mean(short) <= 0.01
    assert short[int(len(short) * 0.99)] <= 0.05


def test_hardly_a_gang_is_split_over_more_switches_than_need_be() -> None:
    assert sum(each.wide for each in outcomes("fragmentation")) > 150
    assert share_too_wide(outcomes("fragmentation")) < 0.02
    assert share_too_wide(outcomes("fragmentation")) < share_too_wide(outcomes("pack"))


def test_an_instance_is_a_part_of_the_cluster_in_use() -> None:
    fleet = an_instance(3).fleet
    switches = [dict(labels)[SWITCH] for labels in fleet.labels]
    behind = {host.switch for host in lingjun_hosts()}
    assert 64 <= len(fleet) < 72
    assert set(switches) <= behind
    assert 0 < np.bitwise_count(fleet.gpu_free).sum() < 8 * len(fleet)
    assert an_instance(3).fleet.gpu_free.tolist() == fleet.gpu_free.tolist()


def test_the_data_is_that_which_was_published() -> None:
    assert len(lingjun_hosts()) == 847
    assert len({host.switch for host in lingjun_hosts()}) == 119
    assert set(itp_gang_sizes()) == {1, 2, 4, 8, 16, 32, 64}
    assert len(itp_gang_sizes()) == 69_351


def test_gangs_of_more_than_a_host_are_pods_of_whole_hosts() -> None:
    (pods,) = a_gang_of(32).pod_sets
    assert (pods.count, dict(pods.per_pod)[GPU], pods.level) == (4, 8, SWITCH)
    (pods,) = a_gang_of(2).pod_sets
    assert (pods.count, dict(pods.per_pod)[GPU], pods.level) == (1, 2, "")


@pytest.mark.parametrize("seed", range(40))
def test_greedy_packing_says_yes_exactly_where_the_solver_does(seed: int) -> None:
    dice = Dice(seed)
    busy = [((1 << dice.number(0, 8)) - 1, 0) for _ in range(4)]
    fleet = fleet_with([a_node(number) for number in range(4)], busy)
    packing = Packing(fleet)
    taken: list[RequestClass] = []
    for _ in range(12):
        gang = a_gang_of(dice.pick([1, 2, 2, 4, 8, 16]))
        fits = packing.add(gang)
        assert fits == can_stand(fleet, [*taken, gang])
        taken += [gang] if fits else []


def test_who_could_not_stand_is_passed_over_and_others_go_on() -> None:
    fleet = fleet_with([a_node(0)], [(0b1111, 0)])
    eight, four, one = a_gang_of(8), a_gang_of(4), a_gang_of(1)
    assert filled_in_order(fleet, [eight, four, one, eight]) == [four]
