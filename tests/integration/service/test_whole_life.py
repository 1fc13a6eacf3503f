"""One job from submit to freed devices, and gangs that compete for the same nodes."""

from gateway.core.vocabulary import EndReason, JobState, Reason
from gateway.service.explaining import explain
from gateway.service.jobs import job_assignments, job_attempts
from tests.service_world import ANNA, World


def test_a_job_goes_through_every_state_and_gives_its_devices_back(world: World) -> None:
    job_id = world.submit(workers=1)
    assert world.state(job_id) is JobState.PENDING

    world.until(job_id, JobState.RUNNING)
    assert world.held() == 32
    done = world.until(job_id, JobState.SUCCEEDED)

    assert world.is_idle()
    assert done.end_reason is EndReason.SUCCEEDED
    assert done.exit_code == 0
    kinds = ["submitted", "reserved", "launching", "running", "stopping", "succeeded"]
    assert world.kinds(job_id) == kinds
    assert world.objects() == 1


def test_the_pods_see_exactly_what_was_reserved(world: World) -> None:
    job_id = world.submit(gpu=2, workers=3)
    world.until(job_id, JobState.RUNNING)

    seen = world.cluster.environments(world.object_name(job_id), "team-a")
    for pod in job_assignments(world.gateway, ANNA, job_id):
        environment = seen[pod.rank]
        assert environment["TRAINING_GATEWAY_NODE"] == pod.node
        names = [device.name for device in pod.devices if device.kind == "rdma"]
        assert environment["TRAINING_GATEWAY_NICS"] == ",".join(names)
        assert len(pod.devices) == 4
    assert sorted(seen) == [0, 1, 2, 3]


def test_the_second_gang_says_why_it_waits_and_starts_when_the_first_is_gone(world: World) -> None:
    first = world.submit(name="first", workers=1)
    second = world.submit(name="second", workers=1)
    world.until(first, JobState.RUNNING)

    waiting = world.job(second)
    assert waiting.state is JobState.PENDING
    assert waiting.reason is Reason.GANG_DOES_NOT_FIT
    answer = explain(world.gateway, ANNA, second)
    assert answer.position == 1
    assert answer.causes
    assert "second" in answer.summary

    world.until(second, JobState.RUNNING)
    assert world.state(first) is JobState.SUCCEEDED
    world.until(second, JobState.SUCCEEDED)
    assert world.is_idle()


def test_a_gang_gets_everything_or_nothing(world: World) -> None:
    small = world.submit(name="small", gpu=1)
    world.until(small, JobState.RUNNING)
    big = world.submit(name="big", gpu=8, workers=1)
    world.turn()

    assert world.state(big) is JobState.PENDING
    assert world.held() == 2


def test_higher_priority_starts_first(world: World) -> None:
    low = world.submit(name="low", workers=1)
    high = world.submit(name="high", workers=1, priority=5)
    world.turn()

    assert world.state(high) is JobState.LAUNCHING
    assert world.state(low) is JobState.PENDING


def test_the_object_name_tells_the_job_and_the_attempt(world: World) -> None:
    job_id = world.submit(name="x" * 63)
    world.until(job_id, JobState.RUNNING)

    (attempt,) = job_attempts(world.gateway, ANNA, job_id)
    assert attempt.object_name.startswith("x" * 40)
    assert attempt.object_name.endswith("-1")
    assert len(attempt.object_name) <= 51
