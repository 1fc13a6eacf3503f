"""One job whose rows make no sense is set aside; everybody else goes on."""

import pytest
from sqlalchemy import delete, update

from gateway.core.vocabulary import JobState, Reason
from gateway.db.tables import assignments, device_grants, jobs, request_classes
from gateway.service.explaining import explain
from gateway.service.verbs import cancel, release
from tests.service_world import ANNA, World


def others_go_on(world: World) -> None:
    """Submit a healthy job and see it through."""
    world.until(world.submit(name="healthy", gpu=1), JobState.SUCCEEDED)


def is_set_aside(world: World, job_id: str) -> bool:
    """Whether a job is in quarantine, told by an event without secrets."""
    events = world.kinds(job_id)
    return bool(events.count("quarantined") == 1 and world.job_row(job_id)["is_quarantined"])


def test_a_request_that_cannot_be_read_stops_only_its_own_jobs(world: World) -> None:
    job_id = world.submit(gpu=2)
    world.write(update(request_classes).values(shape=[{"name": "Worker", "secret": "s3cret"}]))
    world.turn()

    assert is_set_aside(world, job_id)
    assert world.job(job_id).reason is Reason.QUARANTINED
    assert "gateway release" in explain(world.gateway, ANNA, job_id).unblock[0]
    others_go_on(world)


def test_a_request_that_cannot_be_decided_on_stops_only_its_own_jobs(world: World) -> None:
    job_id = world.submit(gpu=2)
    shape = world._scalar(request_classes.select().with_only_columns(request_classes.c.shape))
    shape[0]["per_pod"]["gpu"] = "two"
    world.write(update(request_classes).values(shape=shape))
    healthy = world.submit(name="healthy", gpu=1)
    for _ in range(3):
        world.turn()

    assert is_set_aside(world, job_id)
    world.until(healthy, JobState.SUCCEEDED)


def test_a_job_of_a_vanished_queue_is_set_aside(world: World) -> None:
    job_id = world.submit()
    world.write(update(jobs).values(queue="gone"))
    world.turn()

    assert is_set_aside(world, job_id)
    others_go_on(world)


@pytest.mark.parametrize("state", [JobState.RESERVED, JobState.RUNNING])
def test_a_live_job_that_cannot_be_read_is_set_aside_with_its_devices(
    world: World, state: JobState
) -> None:
    job_id = world.submit(gpu=2)
    world.decide()
    if state is JobState.RUNNING:
        world.until(job_id, state)
    world.gateway.launches.clear()  # as after a restart
    spec = {"labels": {}, "manifest_gone": "s3cret"}
    world.write(update(jobs).values(spec=spec))
    world.turn()
    world.turn()

    assert is_set_aside(world, job_id)
    answer = explain(world.gateway, ANNA, job_id)
    assert answer.reason is Reason.QUARANTINED
    assert f"set aside while {state}" in answer.summary
    assert world.held() == 4, "whoever may still run keeps its devices"
    others_go_on(world)


def test_the_error_is_named_without_what_it_was_about(world: World) -> None:
    job_id = world.submit()
    world.decide()
    world.write(update(jobs).values(spec={"labels": {}, "manifest_gone": "s3cret"}))
    world.turn()

    row = world.job_row(job_id)
    assert row["message"].startswith("KeyError in launch_of:")
    assert "s3cret" not in row["message"]


def test_a_released_job_is_tried_again(world: World) -> None:
    job_id = world.submit()
    world.decide()
    good = world.job_row(job_id)["spec"]
    world.write(update(jobs).values(spec={"labels": {}}))
    world.turn()
    assert is_set_aside(world, job_id)

    world.write(update(jobs).values(spec=good))
    release(world.gateway, ANNA, job_id)
    world.until(job_id, JobState.SUCCEEDED)
    assert world.is_idle()


def test_a_job_set_aside_while_running_can_be_cancelled(world: World) -> None:
    job_id = world.submit()
    world.until(job_id, JobState.RUNNING)
    good = world.job_row(job_id)["spec"]
    world.gateway.launches.clear()
    world.write(update(jobs).values(spec={"labels": {}}))
    world.turn()
    assert is_set_aside(world, job_id)

    world.write(update(jobs).values(spec=good))
    cancel(world.gateway, ANNA, job_id)
    world.until(job_id, JobState.CANCELLED)
    assert world.is_idle()


def test_an_attempt_whose_assignments_are_gone_stops_nobody(world: World) -> None:
    job_id = world.submit(gpu=2)
    world.decide()
    world.write(delete(device_grants))
    world.write(delete(assignments))
    world.turn()

    assert is_set_aside(world, job_id)
    assert world.state(job_id) is JobState.RESERVED
    others_go_on(world)
