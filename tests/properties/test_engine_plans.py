"""What holds for every plan of the engine, with all that queues may define."""

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings

from gateway.core.admission import CyclePlan, PodPlacement, Policies, Snapshot, plan_cycle
from gateway.core.jobs.request import RequestClass
from gateway.core.queues.definitions import Ageing, Queue, Quota
from gateway.core.vocabulary import Blocking, OrderPolicy, QueueState, Reason
from tests.builders import a_pod_set, a_snapshot, waiting_jobs
from tests.oracle.lines import jobs_of
from tests.oracle.planner import new_case
from tests.oracle.reasons import fits_after
from tests.oracle.tree import Row, Tree, Used, pairs_below, path, quota, tree_at, usage
from tests.oracle.waking import instants
from tests.properties.engine_steps import STEPS, a_world
from tests.properties.engine_variants import (
    alone,
    idle,
    reordered,
    with_cpu_times,
    with_less,
    with_weights_times,
)
from tests.properties.engine_world import World
from tests.properties.strategies import Dice, seeds

BUDGET = 1000
ROOT = Path(__file__).resolve().parents[2]
usual = settings(max_examples=60, deadline=None)


def plan(snapshot: Snapshot, now_us: int, budget: int = BUDGET) -> CyclePlan:
    return plan_cycle(snapshot, Policies(), now_us=now_us, budget=budget)


def plan_of(world: World) -> CyclePlan:
    return plan(world.snapshot(), world.now_us)


def lived(seed: int, steps: int = 4) -> World:
    """Give a world in which some gangs run already."""
    world, dice = a_world(seed), Dice(seed + 1)
    for _ in range(steps):
        world.apply(plan_of(world).admits)
        dice.pick(STEPS)(world, dice)
    return world


Decisions = tuple[list[tuple[int, tuple[PodPlacement, ...]]], dict[int, Reason]]


def decisions(answer: CyclePlan) -> Decisions:
    """Give what a plan decides, by job."""
    admits = [(each.job_id, each.placements) for each in answer.admits]
    return admits, {each.job_id: each.reason for each in answer.holds}


@given(seeds)
@usual
def test_the_order_of_the_input_does_not_matter(seed: int) -> None:
    world = lived(seed)
    other = plan(reordered(world, Dice(seed)), world.now_us)
    assert decisions(other) == decisions(plan_of(world))


def digest() -> str:
    """Give a digest of many plans, to compare processes by."""
    return hashlib.sha256(
        repr([decisions(plan_of(lived(seed, steps=2))) for seed in range(12)]).encode()
    ).hexdigest()


def test_the_seed_of_hashes_does_not_matter() -> None:
    code = "from tests.properties.test_engine_plans import digest; print(digest())"
    answers = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)},
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for hash_seed in ("1", "2")
    }
    assert answers == {digest()}


def ages(world: World, dice: Dice) -> World:
    """Give the world with queues in which waiting changes the order."""
    ageings = [Ageing(per_hour=1, cap=3), Ageing(per_hour=7, cap=2), Ageing(per_hour=2, cap=4)]
    orders = [OrderPolicy.PRIORITY, OrderPolicy.FAIR_USERS]
    queues = {
        name: replace(each, order=dice.pick(orders), ageing=dice.pick(ageings))
        for name, each in world.queues.items()
    }
    return replace(world, queues=queues)


@pytest.mark.parametrize("changed", [lambda world, _: world, ages])
@given(seed=seeds)
@usual
def test_nothing_is_admitted_before_the_instant_that_a_plan_names(
    changed: Callable[[World, Dice], World], seed: int
) -> None:
    world = changed(lived(seed), Dice(seed))
    world.apply(plan_of(world).admits)
    after = world.snapshot()
    settled = plan(after, world.now_us)
    wake_us = settled.next_wake_at_us
    assert settled.admits == ()
    assert wake_us is None or wake_us > world.now_us
    moments = [*instants(after, world.now_us)[:8], world.now_us + 10**10]
    for moment in {each + nudge for each in moments for nudge in (-1, 0, 1)}:
        if world.now_us < moment and (wake_us is None or moment < wake_us):
            assert plan(after, moment).admits == (), moment - world.now_us


def test_a_plan_names_its_instant_for_those_it_leaves_waiting() -> None:
    hour_us = 3600 * 10**6
    now_us = 10 * hour_us
    queue = Queue(
        name="q",
        quotas=(Quota(flavor="default", resource="cpu", nominal=3000),),
        blocking=Blocking.STRICT,
        ageing=Ageing(per_hour=1, cap=2),
    )
    gangs = tuple(RequestClass(pod_sets=(a_pod_set(cpu=cpu),)) for cpu in (1000, 3000, 1500))
    # The first goes in. The second stopped ageing at 4 and blocks the third, which passes it later.
    waiting = waiting_jobs(
        gangs,
        queue=[0, 0, 0],
        request_class=[0, 1, 2],
        priority=[5, 2, 3],
        submitted_us=[now_us, 0, now_us],
    )
    answer = plan(a_snapshot(waiting, queues=(queue,)), now_us)
    assert [each.job_id for each in answer.admits] == [1]
    assert answer.next_wake_at_us is not None
    assert answer.next_wake_at_us <= now_us + hour_us + 1


@given(seeds)
@usual
def test_multiplying_all_amounts_or_all_weights_changes_nothing(seed: int) -> None:
    world = lived(seed)
    as_it_is = decisions(plan_of(world))
    assert decisions(plan_of(with_cpu_times(world, 7))) == as_it_is
    assert decisions(plan_of(with_weights_times(world, 5))) == as_it_is


@given(seeds)
@usual
def test_what_fails_fails_on_a_state_with_less(seed: int) -> None:
    world, dice = lived(seed), Dice(seed)
    for job_id in list(world.waiting)[:4]:
        single = alone(world, job_id)
        if not plan_of(single).admits:
            for _ in range(3):
                assert not plan_of(with_less(single, dice)).admits


def uses(snapshot: Snapshot) -> Used:
    return {(each.queue, (each.flavor, each.resource)): each.amount for each in snapshot.usage}


def overcommitted(tree: Tree, before: Used, after: Used) -> list[object]:
    """Give the nodes that use more than they may, and more than they did before."""
    found: list[object] = []
    for node, above in tree.parents.items():
        for pair in pairs_below(tree, path(tree, node)[-1]):
            limit = tree.rows[node].get(pair, Row()).borrowing_limit if above else 0
            most = quota(tree, node, pair) + limit
            if usage(tree, after, node, pair) > max(most, usage(tree, before, node, pair)):
                found.append((node, pair))
    return found


@given(seeds)
@usual
def test_nobody_takes_more_than_its_quota_and_limits_on_any_path(seed: int) -> None:
    world = lived(seed)
    before = world.snapshot()
    world.apply(plan_of(world).admits)
    tree = tree_at(before, world.now_us)
    assert not overcommitted(tree, uses(before), uses(world.snapshot()))


@given(seeds)
@usual
def test_gangs_are_whole_and_everybody_else_has_one_reason(seed: int) -> None:
    world = lived(seed)
    answer = plan_of(world)
    for admit in answer.admits:
        sets = world.waiting[admit.job_id].gang.pod_sets
        pods = sorted((pod.pod_set, pod.index) for pod in admit.placements)
        assert pods == sorted((each.name, i) for each in sets for i in range(each.count))
    told = [each.job_id for each in answer.admits] + [each.job_id for each in answer.holds]
    assert sorted(told) == sorted(world.waiting)


@given(seeds)
@usual
def test_a_job_that_fits_alone_on_an_idle_cluster_starts_within_two_cycles(seed: int) -> None:
    world = idle(a_world(seed))
    for job_id, job in world.waiting.items():
        single = alone(world, job_id)
        is_open = single.queues[job.queue].state is QueueState.OPEN
        if plan_of(single).admits or not is_open:
            continue
        single.now_us = max(single.now_us, job.eligible_us)
        case = new_case(single.snapshot(), single.now_us)
        (facts,) = jobs_of(case.snapshot)
        assert bool(plan_of(single).admits) is fits_after(case, facts, ())
