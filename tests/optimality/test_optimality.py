"""The engine against the solver; `OPTIMALITY=full` in the environment asks for more instances."""

import os
from functools import cache
from statistics import mean

from gateway.core.admission import CyclePlan, Policies, Snapshot, plan_cycle
from gateway.core.jobs.request import RequestClass
from tests.optimality.filling import filled_in_order, gpus_of
from tests.optimality.instances import a_large_instance, a_small_instance
from tests.optimality.packing import can_stand
from tests.properties.applying import applied

IS_FULL = os.environ.get("OPTIMALITY") == "full"
SMALL = range(1500 if IS_FULL else 200)
LARGE = range(300 if IS_FULL else 60)
BUDGET = 1000


@cache
def planned(seed: int) -> tuple[Snapshot, CyclePlan]:
    snapshot = a_small_instance(seed)
    return snapshot, plan(snapshot)


def plan(snapshot: Snapshot) -> CyclePlan:
    return plan_cycle(snapshot, Policies(), now_us=0, budget=BUDGET)


def gangs_of(snapshot: Snapshot) -> dict[int, RequestClass]:
    waiting = snapshot.waiting
    pairs = zip(waiting.job_id.tolist(), waiting.request_class.tolist(), strict=True)
    return {job_id: waiting.classes[index] for job_id, index in pairs}


def refused_though_possible(seed: int) -> tuple[int, int]:
    """Give how many gangs could stand with those admitted before them, and how many were refused.

    The line is walked in the engine's order; those before a gang may stand anywhere in the model.
    """
    snapshot, answer = planned(seed)
    gangs = gangs_of(snapshot)
    admitted = {admit.job_id for admit in answer.admits}
    refused, before = 0, list[RequestClass]()
    for job_id in sorted(gangs):
        if job_id in admitted:
            before.append(gangs[job_id])
        elif can_stand(snapshot.fleet, [*before, gangs[job_id]]):
            refused += 1
    return len(before) + refused, refused


def test_a_gang_is_admitted_whenever_it_can_stand_with_those_before_it() -> None:
    cases = [refused_though_possible(seed) for seed in SMALL]
    possible, refused = (sum(column) for column in zip(*cases, strict=True))
    assert possible > 3 * len(SMALL)
    assert refused <= possible / 100


def test_no_waiting_gang_fits_what_is_left() -> None:
    for seed in SMALL:
        snapshot, answer = planned(seed)
        left = applied(snapshot, answer).fleet
        for gang in set(gangs_of(applied(snapshot, answer)).values()):
            assert can_stand(left, [gang]) is False


def shortfall(seed: int) -> float:
    """Give what part of the GPUs that the model fills in the same order is not filled."""
    snapshot = a_large_instance(seed)
    gangs = gangs_of(snapshot)
    best = filled_in_order(snapshot.fleet, [gangs[job_id] for job_id in sorted(gangs)])
    return 1 - sum(gpus_of(gangs[admit.job_id]) for admit in plan(snapshot).admits) / best


def test_large_fleets_are_filled_nearly_as_well_as_can_be() -> None:
    short = sorted(shortfall(seed) for seed in LARGE)
    assert mean(short) <= 0.01
    assert short[int(len(short) * 0.99)] <= 0.05
