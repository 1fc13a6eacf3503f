"""Caps and budgets at admission: what a queue or a user holds is counted from live reservations."""

from datetime import UTC, datetime
from typing import Any

from gateway.core.vocabulary import JobState, Reason
from gateway.schemas.definitions import QueueSpec
from gateway.service import queues
from gateway.service.cycle import run_cycle
from tests.service_world import ADMIN, START_SECONDS, World

HOUR = 3600.0
START = datetime.fromtimestamp(START_SECONDS, UTC)


def rule(world: World, **rules: Any) -> None:
    spec = QueueSpec.model_validate({"name": "default", **rules})
    queues.update_queue(world.gateway, ADMIN, "default", spec)


def test_a_queue_at_its_cap_of_running_jobs_lets_the_next_one_in_when_one_ends(
    world: World,
) -> None:
    rule(world, caps={"running_jobs": 1})
    first = world.submit(name="first", gpu=1, script={"run-seconds": 600})
    second = world.submit(name="second", gpu=1)
    world.until(first, JobState.RUNNING)
    assert world.job(second).reason is Reason.OVER_CAP
    world.clock.advance(600)
    world.until(second, JobState.RUNNING)


def test_a_user_at_a_cap_does_not_keep_others_waiting(world: World) -> None:
    rule(world, caps={"user_gpus": 2})
    ids = [world.submit(name=f"job-{n}", gpu=2) for n in range(2)]
    other = world.submit(name="small", gpu=0)
    world.turn()
    assert [world.state(job_id) for job_id in ids] == [JobState.LAUNCHING, JobState.PENDING]
    assert world.job(ids[1]).reason is Reason.OVER_CAP
    assert world.state(other) is JobState.LAUNCHING, "a job without GPUs breaks no cap on GPUs"


def test_a_spent_budget_keeps_jobs_waiting_until_its_window_rolls_over(world: World) -> None:
    first = world.submit(name="first", gpu=8, script={"run-seconds": 3600})
    world.until(first, JobState.RUNNING)
    world.clock.advance(HOUR)
    world.until(first, JobState.SUCCEEDED)
    # The budget comes after the use that it counts.
    rule(world, budget={"gpu_hours": 8, "window_days": 1, "starts_at": START})
    second = world.submit(name="second", gpu=1)
    outcome = run_cycle(world.gateway)

    assert world.state(second) is JobState.PENDING
    assert world.job(second).reason is Reason.OVER_BUDGET
    assert outcome is not None
    next_window_us = int((START_SECONDS + 24 * HOUR) * 1_000_000)
    assert outcome.next_wake_at_us == next_window_us
    world.clock.advance(24 * HOUR - (world.clock() - START_SECONDS))
    world.until(second, JobState.RUNNING)


def test_a_cold_start_counts_a_budget_like_a_warm_one(world: World) -> None:
    rule(world, budget={"gpu_hours": 8, "window_days": 1, "starts_at": START})
    first = world.submit(name="first", gpu=8, script={"run-seconds": 3600})
    world.until(first, JobState.RUNNING)
    world.clock.advance(HOUR)
    world.until(first, JobState.SUCCEEDED)
    waiting = world.submit(name="second", gpu=1)
    for _ in range(2):
        world.turn()
        assert world.job(waiting).reason is Reason.OVER_BUDGET
        world.gateway.mirror = type(world.gateway.mirror)()
