"""Every way in which an attempt ends, and that its devices come back each time."""

import pytest

from gateway.core.vocabulary import DeviceHealth, EndReason, JobState
from gateway.schemas.views import JobDetail
from gateway.service.jobs import job_attempts
from gateway.service.stopping import delete_finished
from gateway.service.verbs import cancel
from tests.service_world import ANNA, World


def ended(world: World, job_id: str) -> JobDetail:
    """Wait for the end and make sure that nothing is held any more."""
    job = world.until(job_id, JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED)
    assert world.is_idle()
    assert job.ended_at is not None
    (attempt,) = job_attempts(world.gateway, ANNA, job_id)
    assert attempt.end_reason is job.end_reason
    return job


def test_a_failing_replica_fails_the_job_with_its_exit_code(world: World) -> None:
    job = ended(world, world.submit(workers=1, script={"outcome": "failed", "fail-index": 1}))

    assert (job.state, job.end_reason) == (JobState.FAILED, EndReason.REPLICA_FAILED)
    assert job.exit_code == 1
    assert "Worker 0" in job.message


def test_a_vanished_gang_is_lost_and_not_failed_by_the_training(world: World) -> None:
    job = ended(world, world.submit(script={"outcome": "lost"}))

    assert job.end_reason is EndReason.GANG_LOST
    assert job.exit_code is None


def test_a_lost_node_loses_its_gang_and_takes_no_new_one(world: World) -> None:
    job_id = world.submit(workers=1)
    world.until(job_id, JobState.RUNNING)
    world.cluster.fail_node("dgx-h100-0")

    assert ended(world, job_id).end_reason is EndReason.GANG_LOST


def test_an_object_deleted_behind_our_back_fails_the_job(world: World) -> None:
    job_id = world.submit(script={"delete-seconds": 5})
    world.until(job_id, JobState.RUNNING)
    world.cluster.delete_behind_our_back(world.object_name(job_id), "team-a")
    world.turn()
    assert world.state(job_id) is JobState.STOPPING
    assert world.held() == 16, "its pods still hold the devices"

    assert ended(world, job_id).end_reason is EndReason.DELETED_EXTERNALLY


def test_a_master_may_succeed_while_workers_run(world: World) -> None:
    job_id = world.submit(workers=1, script={"run-seconds": 1000, "delete-seconds": 3})
    world.until(job_id, JobState.RUNNING)
    world.cluster.finish_replica(world.object_name(job_id), 0, namespace="team-a")
    world.turn()
    assert world.state(job_id) is JobState.STOPPING
    assert world.held() == 32, "the worker still runs"

    assert ended(world, job_id).end_reason is EndReason.SUCCEEDED


def test_devices_stay_held_until_the_last_pod_is_gone(world: World) -> None:
    first = world.submit(name="first", workers=1, script={"delete-seconds": 20})
    second = world.submit(name="second", workers=1)
    world.until(first, JobState.RUNNING)
    cancel(world.gateway, ANNA, first)
    for _ in range(15):
        world.turn()
        assert world.held() == 32
        assert world.state(second) is JobState.PENDING

    world.until(first, JobState.CANCELLED)
    world.until(second, JobState.RUNNING)


def test_a_gang_that_never_gets_ready_ends_by_its_start_timeout(world: World) -> None:
    job_id = world.submit(script={"outcome": "never-starts"}, start_timeout_seconds=30)
    world.until(job_id, JobState.LAUNCHING)
    for _ in range(28):
        world.turn()
    assert world.state(job_id) is JobState.LAUNCHING

    assert ended(world, job_id).end_reason is EndReason.START_TIMEOUT


def test_a_gang_that_runs_too_long_ends_by_its_run_timeout(world: World) -> None:
    job_id = world.submit(script={"run-seconds": 10_000}, run_timeout_seconds=20)

    assert ended(world, job_id).end_reason is EndReason.RUN_TIMEOUT


def test_a_job_that_waits_too_long_ends_by_its_queue_timeout(world: World) -> None:
    world.until(world.submit(name="first", workers=1, script={"run-seconds": 50}), JobState.RUNNING)
    job_id = world.submit(name="second", workers=1, queue_timeout_seconds=10)
    job = world.until(job_id, JobState.FAILED)

    assert job.end_reason is EndReason.QUEUE_TIMEOUT
    assert job_attempts(world.gateway, ANNA, job_id) == ()


def test_a_held_job_also_ends_by_its_queue_timeout(world: World) -> None:
    job_id = world.submit(hold=True, queue_timeout_seconds=10)
    assert world.until(job_id, JobState.FAILED).end_reason is EndReason.QUEUE_TIMEOUT


def test_a_recreated_replica_is_opened_again_and_too_many_end_the_attempt(world: World) -> None:
    job_id = world.submit(workers=1, script={"run-seconds": 10_000})
    world.until(job_id, JobState.RUNNING)
    name = world.object_name(job_id)
    before = world.cluster.environments(name, "team-a")[1]
    for _ in range(3):
        world.cluster.recreate_pod(name, 1, namespace="team-a")
        world.turn()
        assert world.cluster.environments(name, "team-a")[1] == before
        assert world.state(job_id) is JobState.RUNNING

    world.cluster.recreate_pod(name, 1, namespace="team-a")
    job = ended(world, job_id)
    assert job.end_reason is EndReason.TOO_MANY_RESTARTS


def test_a_manifest_the_cluster_refuses_ends_the_job_and_frees_at_once(world: World) -> None:
    job_id = world.submit(script={"outcome": "rejected"})
    world.turn()

    job = world.job(job_id)
    assert (job.state, job.end_reason) == (JobState.FAILED, EndReason.REJECTED_BY_CLUSTER)
    assert "refuses" in job.message
    assert world.is_idle()


def test_a_foreign_object_of_our_name_is_left_alone(world: World) -> None:
    world.cluster.set_unreachable(True)
    job_id = world.submit()
    world.turn()
    name = world.object_name(job_id)
    world.cluster.set_unreachable(False)
    uid = world.cluster.plant_foreign(name, "team-a")

    job = ended(world, job_id)

    assert job.end_reason is EndReason.FOREIGN_OBJECT
    world.clock.advance(10_000)
    delete_finished(world.gateway)
    assert world.cluster.uid_of(name, "team-a") == uid


@pytest.mark.parametrize("health", [DeviceHealth.UNHEALTHY, DeviceHealth.CORDONED])
def test_a_node_that_turns_bad_takes_no_new_gang_and_keeps_its_old_one(
    world: World, health: DeviceHealth
) -> None:
    first = world.submit(name="first")
    world.until(first, JobState.RUNNING)
    world.cluster.set_node_health("dgx-h100-0", health)
    world.cluster.set_node_health("dgx-h100-1", health)
    world.read_fleet()
    second = world.submit(name="second")
    world.turn()

    assert world.state(first) is JobState.RUNNING
    assert world.job(second).reason == "NodesUnavailable"
    world.until(first, JobState.SUCCEEDED)
    world.cluster.set_node_health("dgx-h100-1", DeviceHealth.HEALTHY)
    world.read_fleet()
    world.until(second, JobState.SUCCEEDED)
    assert world.is_idle()
