"""An unreachable cluster, lost answers, and what must not be freed or started because of them."""

import threading
from itertools import pairwise
from unittest.mock import Mock

import pytest
from sqlalchemy import update

from gateway.backends.base import Launch, ObjectRef
from gateway.backends.simulated import SimulatedBackend
from gateway.backends.virtual_fleet import virtual_fleet
from gateway.core.vocabulary import EndReason, JobState, Reason
from gateway.db.tables import attempts
from gateway.errors import ClusterRejected, Overloaded
from gateway.service.explaining import explain
from gateway.service.jobs import job_attempts
from gateway.service.launching import launch_due
from gateway.service.reconciling import reconcile_due
from gateway.service.stopping import delete_finished
from gateway.service.verbs import cancel
from tests.service_world import ANNA, World

STARTING = ("create", "unsuspend", "open_gates")


def test_a_job_stays_reserved_and_says_why_while_the_cluster_is_unreachable(world: World) -> None:
    world.cluster.set_unreachable(True)
    job_id = world.submit()
    for _ in range(5):
        world.turn()

    assert world.state(job_id) is JobState.RESERVED
    assert world.job(job_id).reason is Reason.CLUSTER_UNREACHABLE
    assert "cut off" in explain(world.gateway, ANNA, job_id).summary
    assert world.held() == 16
    world.cluster.set_unreachable(False)
    job = world.until(job_id, JobState.RUNNING)
    assert job.reason is None
    assert world.objects() == 1


def test_launches_are_tried_again_ever_more_seldom(world: World) -> None:
    world.cluster.set_unreachable(True)
    job_id = world.submit()
    world.turn()
    tried = []
    for second in range(40):
        before = world.attempt(job_id)["launch_failures"]
        world.turn()
        if world.attempt(job_id)["launch_failures"] > before:
            tried.append(second)
    assert len(tried) == 4
    pauses = [after - before for before, after in pairwise(tried)]
    assert pauses == sorted(pauses)


class MeetingCluster(SimulatedBackend):
    """Answers a create only while another one is under way."""

    calls_at_once = 2
    meeting = threading.Barrier(2)

    def create(self, launch: Launch) -> ObjectRef:
        """Wait for the other one."""
        self.meeting.wait(30)
        return super().create(launch)


def test_gangs_are_launched_several_at_a_time(world: World) -> None:
    world.gateway.backend = MeetingCluster(virtual_fleet("2xdgx-h100"), clock=world.clock)
    jobs = [world.submit(name=f"job-{n}", gpu=1) for n in range(2)]
    for job_id in jobs:
        world.until(job_id, JobState.RUNNING)


def test_a_dead_cluster_is_asked_once_a_pass_whether_it_answers(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = [world.submit(name=f"job-{n}", gpu=1) for n in range(6)]
    for job_id in jobs:
        world.until(job_id, JobState.RUNNING)
    world.cluster.set_unreachable(True)
    asked = Mock(wraps=world.gateway.backend.is_reachable)
    monkeypatch.setattr(world.gateway.backend, "is_reachable", asked)
    reconcile_due(world.gateway)

    # Each question costs its timeout, for which nobody renews the lease.
    assert asked.call_count == 1
    assert world.held() == 12


@pytest.mark.parametrize("verb", [*STARTING, "stop"])
@pytest.mark.parametrize("times", [1, 2])
def test_a_lost_answer_makes_no_second_object(world: World, verb: str, times: int) -> None:
    job_id = world.submit(workers=1)
    world.cluster.lose_answers(verb, times)
    world.until(job_id, JobState.RUNNING)
    cancel(world.gateway, ANNA, job_id)
    world.until(job_id, JobState.CANCELLED)

    assert world.objects() == 1
    assert world.job(job_id).attempt == 1
    assert world.is_idle()


def test_not_found_after_a_sent_create_frees_nothing_before_the_server_gave_up(
    world: World,
) -> None:
    world.cluster.set_unreachable(True)
    job_id = world.submit()
    world.turn()
    cancel(world.gateway, ANNA, job_id)
    world.cluster.set_unreachable(False)
    for _ in range(64):
        world.turn()
        assert world.held() == 16
    world.until(job_id, JobState.CANCELLED)
    assert world.is_idle()


def test_a_job_that_was_never_sent_is_freed_even_when_the_cluster_is_down(world: World) -> None:
    job_id = world.submit()
    world.decide()
    assert world.state(job_id) is JobState.RESERVED
    world.cluster.set_unreachable(True)
    cancel(world.gateway, ANNA, job_id)
    reconcile_due(world.gateway)

    assert world.state(job_id) is JobState.CANCELLED
    assert world.is_idle()


def test_an_object_that_appears_late_is_stopped_and_then_removed(world: World) -> None:
    world.cluster.lose_answers("create")
    job_id = world.submit()
    world.turn()
    cancel(world.gateway, ANNA, job_id)
    world.until(job_id, JobState.CANCELLED)
    assert world.attempt(job_id)["object_uid"], "found by its name"

    world.write(update(attempts).values(object_uid=""))  # as if it had come after the end
    world.clock.advance(61)
    assert delete_finished(world.gateway) == 1
    assert world.objects() == 0


def test_a_cancel_between_two_steps_wins(world: World) -> None:
    job_id = world.submit()
    world.decide()
    create = world.cluster.create

    def create_and_cancel(launch: object) -> object:
        ref = create(launch)  # type: ignore[arg-type]  # the fake passes on what it got
        cancel(world.gateway, ANNA, job_id)
        return ref

    world.cluster.create = create_and_cancel  # type: ignore[method-assign,assignment]
    launch_due(world.gateway)
    assert world.state(job_id) is JobState.STOPPING
    assert world.attempt(job_id)["object_uid"]
    world.until(job_id, JobState.CANCELLED)
    assert "launching" not in world.kinds(job_id)
    assert world.is_idle()


def test_a_running_gang_is_kept_through_an_outage(world: World) -> None:
    job_id = world.submit(script={"run-seconds": 20})
    world.until(job_id, JobState.RUNNING)
    world.cluster.set_unreachable(True)
    for _ in range(40):
        world.turn()
    assert world.state(job_id) is JobState.RUNNING
    assert world.held() == 16
    world.cluster.set_unreachable(False)
    assert world.until(job_id, JobState.SUCCEEDED).end_reason is EndReason.SUCCEEDED


def test_a_throttling_cluster_is_named_as_such(world: World) -> None:
    def busy(*_: object) -> object:
        raise Overloaded("slow down", hint="later")

    world.cluster.create = busy  # type: ignore[method-assign,assignment]
    job_id = world.submit()
    world.turn()
    assert world.job(job_id).reason is Reason.LAUNCH_THROTTLED
    assert job_attempts(world.gateway, ANNA, job_id)[0].phase == "intended"


def test_a_cluster_that_forbids_looking_sets_no_job_aside(world: World) -> None:
    job_id = world.submit()
    world.until(job_id, JobState.RUNNING)
    observe = world.cluster.observe

    def forbidden(*_: object) -> object:
        raise ClusterRejected("pods is forbidden", hint="grant list on pods")

    world.cluster.observe = forbidden  # type: ignore[method-assign,assignment]
    world.turn()
    world.cluster.observe = observe  # type: ignore[method-assign]
    world.until(job_id, JobState.SUCCEEDED)


class ForbiddingCluster(SimulatedBackend):
    """Lets the gateway neither create objects nor look for them."""

    def create(self, launch: Launch) -> ObjectRef:
        """Refuse."""
        raise ClusterRejected(f"may not create pytorchjobs in {launch.namespace}", hint="grant it")

    def find(self, launch: Launch) -> ObjectRef | None:
        """Refuse."""
        raise ClusterRejected(f"may not get pytorchjobs in {launch.namespace}", hint="grant it")


def test_a_job_that_a_cluster_forbids_altogether_fails_and_frees_its_devices(world: World) -> None:
    world.gateway.backend = ForbiddingCluster(virtual_fleet("2xdgx-h100"), clock=world.clock)
    job_id = world.submit()
    world.turn()
    world.turn()
    job = world.job(job_id)
    assert (job.state, job.end_reason) == (JobState.FAILED, EndReason.REJECTED_BY_CLUSTER)
    assert job.message == "may not create pytorchjobs in team-a"
    assert world.is_idle()


def test_only_so_many_gangs_are_reserved_before_they_are_launched(world: World) -> None:
    world.gateway.settings = world.gateway.settings.model_copy(update={"max_unlaunched": 2})
    world.cluster.set_unreachable(True)
    ids = [world.submit(name=f"job-{n}", gpu=1) for n in range(4)]
    world.turn()
    world.turn()

    states = [world.state(job_id) for job_id in ids]
    assert states == [*[JobState.RESERVED] * 2, *[JobState.PENDING] * 2]
    assert world.job(ids[3]).reason is Reason.LAUNCH_THROTTLED
    assert explain(world.gateway, ANNA, ids[3]).reason is Reason.LAUNCH_THROTTLED
    world.cluster.set_unreachable(False)
    for job_id in ids:
        world.until(job_id, JobState.SUCCEEDED)
