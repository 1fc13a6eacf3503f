"""Admins put a job first by the smallest change that does it, on each database."""

import pytest

from gateway.core.vocabulary import JobState, OrderPolicy
from gateway.errors import Conflict, Denied, InvalidInput, InvalidTransition, StaleVersion
from gateway.schemas.definitions import QueueSpec
from gateway.schemas.queue_rules import AgeingSpec
from gateway.service import queues
from gateway.service.jobs import job_events
from gateway.service.ordering import queue_order
from gateway.service.topping import top
from gateway.service.verbs import hold
from tests.service_world import ADMIN, ANNA, World


def define(world: World, **fields: object) -> None:
    spec = QueueSpec.model_validate({"name": "default", **fields})
    queues.update_queue(world.gateway, ADMIN, "default", spec)


@pytest.fixture
def crowded(world: World) -> World:
    """Give a world whose fleet is taken, with jobs of priority 5, 2 and 0 waiting."""
    world.until(world.submit(name="first", workers=1), JobState.RUNNING)
    for priority in (5, 2, 0):
        world.submit(name=f"job-{priority}", priority=priority)
        world.clock.advance(60)
    world.decide()
    return world


def order(world: World) -> list[tuple[str, int | None]]:
    page = queue_order(world.gateway, ADMIN, "default")
    return [(each.name, each.priority) for each in page.items]


def job_id(world: World, name: str) -> str:
    page = queue_order(world.gateway, ADMIN, "default")
    (found,) = (each.job_id for each in page.items if each.name == name)
    return str(found)


def test_the_job_comes_first_by_the_least_that_will_do(crowded: World) -> None:
    job = job_id(crowded, "job-0")
    assert top(crowded.gateway, ADMIN, job).priority == 6
    assert order(crowded) == [("job-0", 6), ("job-5", 5), ("job-2", 2)]
    event = list(job_events(crowded.gateway, ADMIN, job, 0, 500).items)[-1]
    assert (event.kind, event.actor) == ("topped", "root")
    assert event.detail == "0 -> 6, first of queue default"
    assert top(crowded.gateway, ADMIN, job).version == crowded.job(job).version


def test_age_counts_and_a_tie_is_won_by_the_older(crowded: World) -> None:
    define(crowded, ageing=AgeingSpec(per_hour=60, cap=100))
    crowded.clock.advance(3600)
    # The last one has waited two minutes less than the first, which is two points.
    assert top(crowded.gateway, ADMIN, job_id(crowded, "job-0")).priority == 8
    assert order(crowded)[0] == ("job-0", 8)
    assert top(crowded.gateway, ADMIN, job_id(crowded, "job-5")).priority == 6


def test_an_older_job_needs_no_more_than_the_same_number(crowded: World) -> None:
    crowded.submit(name="late", priority=9)
    assert top(crowded.gateway, ADMIN, job_id(crowded, "job-5")).priority == 9
    assert order(crowded)[0] == ("job-5", 9)


def test_a_list_that_has_changed_is_a_conflict(crowded: World) -> None:
    serial = queue_order(crowded.gateway, ADMIN, "default").list_serial
    job = job_id(crowded, "job-0")
    hold(crowded.gateway, ANNA, job_id(crowded, "job-2"))
    with pytest.raises(StaleVersion, match="has changed"):
        top(crowded.gateway, ADMIN, job, serial)
    assert crowded.job(job).priority == 0
    serial = queue_order(crowded.gateway, ADMIN, "default").list_serial
    assert top(crowded.gateway, ADMIN, job, serial).priority == 6


def test_a_number_that_the_queue_does_not_take_is_refused(crowded: World) -> None:
    define(crowded, priority_max=5)
    with pytest.raises(InvalidInput, match="needs priority 6") as caught:
        top(crowded.gateway, ADMIN, job_id(crowded, "job-0"))
    assert caught.value.hint
    assert order(crowded)[0] == ("job-5", 5)


def test_where_the_number_does_not_decide_it_is_refused(crowded: World) -> None:
    job = job_id(crowded, "job-0")
    define(crowded, order=OrderPolicy.SHORTEST.value)
    with pytest.raises(Conflict, match="ordered by shortest"):
        top(crowded.gateway, ADMIN, job)
    define(crowded)
    later = crowded.submit(name="later", not_before_at="2099-01-31T18:00:00Z")
    with pytest.raises(Conflict, match="time has not come"):
        top(crowded.gateway, ADMIN, later)


def test_only_admins_may_and_only_for_pending_jobs(crowded: World) -> None:
    job = job_id(crowded, "job-0")
    with pytest.raises(Denied):
        top(crowded.gateway, ANNA, job)
    hold(crowded.gateway, ANNA, job)
    with pytest.raises(InvalidTransition):
        top(crowded.gateway, ADMIN, job)
