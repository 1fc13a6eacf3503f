"""Who decides: one leader at a time, fenced by its epoch; and plans that come too late."""

import pytest
from sqlalchemy import select, update

from gateway.core.admission import CyclePlan
from gateway.core.vocabulary import JobState
from gateway.db.state import bump_generation
from gateway.db.tables import devices, jobs, leader_lease
from gateway.errors import StaleLeader
from gateway.service.cycle import run_cycle
from gateway.service.inventory import sync
from gateway.service.launching import launch_due
from gateway.service.leading import keep_leading, stop_leading
from gateway.service.reconciling import reconcile_due
from gateway.service.verbs import hold
from tests.service_world import ANNA, Between, World, a_replica


def test_a_replica_that_does_not_lead_decides_and_launches_nothing(shared: World) -> None:
    other = a_replica(shared)
    assert not keep_leading(other)
    job_id = shared.submit()

    assert run_cycle(other) is None
    assert sync(other) is None
    assert launch_due(other) == 0
    assert shared.state(job_id) is JobState.PENDING
    shared.until(job_id, JobState.RUNNING)


def test_a_released_lease_is_taken_at_once_and_the_new_leader_goes_on(shared: World) -> None:
    job_id = shared.submit(workers=1)
    shared.until(job_id, JobState.LAUNCHING)
    other = a_replica(shared)
    stop_leading(shared.gateway)

    assert keep_leading(other)
    shared.gateway = other
    shared.until(job_id, JobState.SUCCEEDED)
    assert shared.is_idle()
    assert shared.objects() == 1
    assert shared.job(job_id).attempt == 1


def test_a_former_leader_writes_no_decision(world: World) -> None:
    job_id = world.submit()
    world.write(update(leader_lease).values(epoch=leader_lease.c.epoch + 1, holder="other"))

    with pytest.raises(StaleLeader):
        run_cycle(world.gateway)
    assert world.state(job_id) is JobState.PENDING
    assert world.held() == 0


def test_a_former_leader_stores_no_step_and_no_end(world: World) -> None:
    job_id = world.submit()
    world.decide()
    world.write(update(leader_lease).values(epoch=leader_lease.c.epoch + 1, holder="other"))

    with pytest.raises(StaleLeader):
        launch_due(world.gateway)
    assert world.attempt(job_id)["phase"] == "intended"
    assert world.objects() == 0, "the intent is stored before anything is sent"


def test_no_call_is_made_that_the_lease_may_not_outlive(world: World) -> None:
    job_id = world.submit()
    world.decide()
    world.gateway.leadership.valid_until -= 10.5

    assert launch_due(world.gateway) == 0
    assert reconcile_due(world.gateway) == 0
    assert world.objects() == 0
    assert keep_leading(world.gateway)
    world.until(job_id, JobState.RUNNING)


def test_a_job_that_changed_since_the_plan_is_dropped_alone(world: World, between: Between) -> None:
    changed, other = world.submit(name="changed", gpu=1), world.submit(name="other", gpu=1)
    between(lambda _: hold(world.gateway, ANNA, changed))

    outcome = run_cycle(world.gateway)

    assert outcome is not None
    assert (outcome.admitted, outcome.is_dirty) == (1, True)
    assert world.state(changed) is JobState.HELD
    assert world.state(other) is JobState.RESERVED
    assert world.held() == 2


def test_a_device_that_was_taken_since_the_plan_drops_that_gang_alone(
    world: World, between: Between
) -> None:
    ids = [world.submit(name=f"job-{n}", gpu=1) for n in range(2)]

    def break_first_gpu(plan: CyclePlan) -> None:
        first = plan.admits[0].placements[0]
        gpu = (
            devices.c.node_id == first.node_id,
            devices.c.kind == "gpu",
            devices.c.ordinal == first.gpu_mask.bit_length() - 1,
        )
        world.write(update(devices).where(*gpu).values(health="unhealthy"))

    between(break_first_gpu)
    outcome = run_cycle(world.gateway)

    assert outcome is not None
    assert (outcome.admitted, outcome.is_dirty) == (1, True)
    assert sorted(world.state(job_id) for job_id in ids) == [JobState.PENDING, JobState.RESERVED]
    assert world.held() == 2


def test_a_plan_made_under_old_definitions_is_not_committed(world: World, between: Between) -> None:
    job_id = world.submit()
    between(lambda _: world.gateway.database.run_write(bump_generation))

    outcome = run_cycle(world.gateway)

    assert outcome is not None
    assert (outcome.admitted, outcome.is_dirty) == (0, True)
    assert world.state(job_id) is JobState.PENDING
    world.decide()
    assert world.state(job_id) is JobState.RESERVED


def test_a_cold_mirror_decides_what_a_warm_one_decides(world: World) -> None:
    world.until(world.submit(name="first", gpu=3, workers=1), JobState.RUNNING)
    job_id = world.submit(name="second", gpu=2, workers=2)
    world.gateway.mirror = type(world.gateway.mirror)()
    world.decide()

    assert world.state(job_id) is JobState.RESERVED
    assert world.held() == 12 + 12


def test_reasons_are_written_only_when_they_change(world: World) -> None:
    world.until(world.submit(name="first", workers=1), JobState.RUNNING)
    job_id = world.submit(name="second", workers=1)
    world.turn()
    # The pass in which it lost to others said so; the next one says what holds from now on.
    world.turn()
    before = world.class_hold(job_id)
    for _ in range(3):
        world.turn()

    assert world.class_hold(job_id) == before
    stored = world._scalar(select(jobs.c.reason).where(jobs.c.uid == job_id))
    assert stored is None, "no row is written for each waiting job"
    assert world.job(job_id).reason == before["reason"]
