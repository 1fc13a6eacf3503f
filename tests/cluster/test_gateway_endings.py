"""However a gang ends, its job ends right and every device comes back."""

import pytest

from gateway.core.vocabulary import EndReason, JobState
from gateway.service.verbs import cancel, requeue
from tests.cluster.gateway_world import GatewayWorld, a_job
from tests.cluster.harness.scripts import PodScript
from tests.cluster.pytorch_jobs import jobs_path


def test_a_gang_that_ends_well_succeeds_and_frees_its_devices(world: GatewayWorld) -> None:
    job = world.submit(a_job(world.site.namespace, workers=2, gpus=2))
    world.until(job, JobState.RUNNING)
    assert world.held() == 12
    for rank in (1, 2, 0):
        world.finish(job, rank)
    ended = world.until(job, JobState.SUCCEEDED)
    assert (ended.end_reason, ended.exit_code, ended.attempt) == (EndReason.SUCCEEDED, 0, 1)
    world.assert_idle()
    assert world.object(job) is not None, "a finished object is kept for a while"


def test_a_master_that_succeeds_while_workers_run_is_a_success(world: GatewayWorld) -> None:
    job = world.submit(a_job(world.site.namespace, workers=3, gpus=2))
    world.until(job, JobState.RUNNING)
    world.site.cluster.kubelet.script(PodScript(replica_type="worker", stop_seconds=2.0))
    world.finish(job)
    world.until(job, JobState.STOPPING)
    assert world.held() == 16, "workers that still run keep the devices of the whole gang"
    world.until(job, JobState.SUCCEEDED)
    assert world.live_pods(job) == []
    world.assert_idle()


def test_a_failed_worker_fails_the_job_with_its_exit_code(world: GatewayWorld) -> None:
    job = world.submit(a_job(world.site.namespace, workers=2))
    world.until(job, JobState.RUNNING)
    world.finish(job, rank=2, exit_code=42)
    ended = world.until(job, JobState.FAILED)
    assert (ended.end_reason, ended.exit_code) == (EndReason.REPLICA_FAILED, 42)
    assert "Worker 1" in ended.message
    [attempt] = world.attempts(job)
    assert attempt.exit_code == 42
    assert world.live_pods(job) == []
    world.assert_idle()


@pytest.mark.parametrize("state", [JobState.LAUNCHING, JobState.RUNNING])
def test_a_cancelled_gang_leaves_nothing_behind(world: GatewayWorld, state: JobState) -> None:
    if state is JobState.LAUNCHING:
        world.site.cluster.kubelet.script(PodScript(stuck="ImagePullBackOff"))
    job = world.submit(a_job(world.site.namespace))
    world.until(job, state)
    cancel(world.gateway, world.caller, job)
    ended = world.until(job, JobState.CANCELLED)
    assert ended.end_reason is EndReason.CANCELLED
    world.until_true(lambda: world.object(job) is None, "its object to be collected")
    assert world.live_pods(job) == []
    world.assert_idle()


def test_a_job_deleted_behind_our_back_fails_and_says_so(world: GatewayWorld) -> None:
    job = world.submit(a_job(world.site.namespace))
    world.until(job, JobState.RUNNING)
    world.site.cluster.rest.delete(jobs_path(world.site.namespace, world.object_name(job)))
    ended = world.until(job, JobState.FAILED)
    assert ended.end_reason is EndReason.DELETED_EXTERNALLY
    assert world.live_pods(job) == []
    world.assert_idle()


def test_devices_stay_held_while_a_pod_will_not_die(world: GatewayWorld) -> None:
    stubborn = PodScript(replica_type="worker", terminates=False)
    world.site.cluster.kubelet.script(stubborn)
    job = world.submit(a_job(world.site.namespace))
    world.until(job, JobState.RUNNING)
    cancel(world.gateway, world.caller, job)
    world.until_true(lambda: world.pod(job, 0) is None, "the Master to go")
    assert world.live_pods(job) == world.pod_names(job)[1:]
    assert (world.job(job).state, world.held()) == (JobState.STOPPING, 4)
    world.site.cluster.kubelet.reset()
    world.until(job, JobState.CANCELLED)
    world.assert_idle()


def test_a_requeued_gang_starts_anew_under_a_name_of_its_own(world: GatewayWorld) -> None:
    job = world.submit(a_job(world.site.namespace))
    world.until(job, JobState.RUNNING)
    before = world.object_name(job)
    requeue(world.gateway, world.caller, job)
    world.until_true(lambda: world.job(job).attempt == 2, "the second attempt")
    world.until(job, JobState.RUNNING)
    assert world.object_name(job) != before
    assert [attempt.number for attempt in world.attempts(job)] == [1, 2]
    world.finish(job)
    world.until(job, JobState.SUCCEEDED)
    world.assert_idle()
