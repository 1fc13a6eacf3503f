"""A dry run says whether a job would start now, where, else why not; on each database."""

import pytest

from gateway.core.vocabulary import JobState, Reason
from gateway.errors import Conflict
from gateway.schemas.definitions import QueueSpec
from gateway.schemas.views import PlanView
from gateway.service import queues
from gateway.service.explaining import explain
from gateway.service.jobs import job_assignments
from gateway.service.previewing import Place, preview
from gateway.service.submit import plan
from tests.service_world import ADMIN, ANNA, World, a_spec


def planned(world: World, name: str = "asked", **asks: object) -> PlanView:
    return plan(world.gateway, ANNA, a_spec(name, **asks))  # type: ignore[arg-type]  # by name


def test_the_place_told_is_the_place_taken(world: World) -> None:
    world.until(world.submit(name="other", gpu=4), JobState.RUNNING)
    told = planned(world, gpu=2, workers=1)
    assert (told.starts_now, told.reason, told.unblock, told.position) == (True, None, (), 1)
    assert [pod.rank for pod in told.placements] == [0, 1]
    assert {(row.flavor, row.resource): row.amount for row in told.charges}["default", "gpu"] == 4
    job = world.submit(a_spec("asked", gpu=2, workers=1))
    world.until(job, JobState.RUNNING)
    taken = job_assignments(world.gateway, ANNA, job)
    assert [(pod.pod_set, pod.index, pod.node, pod.devices) for pod in told.placements] == [
        (pod.pod_set, pod.index, pod.node, pod.devices) for pod in taken
    ]
    assert told.summary == "asked would start now: 2 pods on dgx-h100-0"


def test_who_waits_before_it_is_served_first(world: World) -> None:
    assert planned(world, gpu=8, workers=1).starts_now
    world.submit(name="before", gpu=8, workers=1)
    told = planned(world, gpu=8, workers=1)
    assert (told.starts_now, told.placements) == (False, ())
    assert (told.position, told.jobs_ahead, told.gpus_ahead) == (2, 1, 16)
    assert told.reason is Reason.BEHIND_PRIORITY
    assert planned(world, gpu=8, workers=1, priority=5).starts_now


def test_why_it_would_wait_is_told_as_explain_does(world: World) -> None:
    world.until(world.submit(name="large", gpu=8, workers=1), JobState.RUNNING)
    told = planned(world, gpu=4)
    job = world.submit(a_spec("asked", gpu=4))
    world.decide()
    real = explain(world.gateway, ANNA, job)
    assert (told.reason, told.causes, told.unblock) == (real.reason, real.causes, real.unblock)
    assert (told.quota_path, told.position) == (real.quota_path, real.position)
    assert "would wait in queue default" in told.summary


def test_what_bars_it_is_told(world: World) -> None:
    held = planned(world, hold=True)
    assert (held.reason, held.unblock) == (Reason.HELD, ("it to be released",))
    later = planned(world, not_before_at="2030-01-31T18:00:00Z")
    assert (later.reason, later.position) == (Reason.NOT_BEFORE, 1)
    assert later.unblock == ("the time to be 2030-01-31T18:00:00Z",)
    queues.pause_queue(world.gateway, ADMIN, "default")
    assert planned(world).reason is Reason.QUEUE_PAUSED


def test_nothing_is_stored_and_the_next_cycle_decides_as_if_nobody_had_asked(world: World) -> None:
    for number in range(3):
        world.submit(name=f"job-{number}", gpu=8)
    planned(world, gpu=8, priority=9)
    planned(world, gpu=3)
    state = world.gateway.mirror.mirror.state
    assert (len(state.lines), sorted(state.classes)) == (3, [1])
    world.decide()
    assert world.held() == 32
    assert len(queues.list_queues(world.gateway, ADMIN)) == 1


def test_a_queue_that_went_away_is_a_conflict(world: World) -> None:
    spec = QueueSpec(name="short-lived")
    queues.create_queue(world.gateway, ADMIN, spec)
    queues.delete_queue(world.gateway, ADMIN, "short-lived")
    with pytest.raises(Conflict):
        preview(world.gateway, ANNA, a_spec(queue="short-lived"), Place(rank=0, highest=0))
