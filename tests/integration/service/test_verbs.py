"""What users may do to a job in each state, and what it answers otherwise."""

from collections.abc import Callable, Iterator

import pytest

from gateway.core.vocabulary import EndReason, JobState, Reason
from gateway.db.engine import open_database
from gateway.errors import InvalidTransition, NotFound
from gateway.schemas.views import JobView
from gateway.service import verbs
from gateway.service.context import Caller, Gateway
from gateway.service.jobs import job_attempts
from gateway.service.reprioritising import NewPlace, reprioritise
from tests.service_world import ANNA, BEN, World, a_world

Verb = Callable[[Gateway, Caller, str], JobView]
STOPPED = (JobState.RESERVED, JobState.LAUNCHING, JobState.RUNNING)
ENDED = (JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED)


@pytest.fixture
def one_world(sqlite_url: str) -> Iterator[World]:
    """Give a world on one database, for a table of what never reaches a statement."""
    database = open_database(sqlite_url)
    yield a_world(database)
    database.close()


def raise_priority(gateway: Gateway, caller: Caller, job_id: str) -> JobView:
    return reprioritise(gateway, caller, job_id, NewPlace(priority=7))


def bring_to(world: World, state: JobState) -> str:
    """Give a job in this state."""
    script = {"outcome": "failed"} if state is JobState.FAILED else {}
    job_id = world.submit(hold=state is JobState.HELD, script={**script, "delete-seconds": 30})
    if state is JobState.CANCELLED:
        verbs.cancel(world.gateway, ANNA, job_id)
    elif state is JobState.RESERVED:
        world.cluster.set_unreachable(True)
        world.turn()
    elif state is JobState.STOPPING:
        world.until(job_id, JobState.RUNNING)
        verbs.cancel(world.gateway, ANNA, job_id)
    elif state not in {JobState.PENDING, JobState.HELD}:
        world.until(job_id, state)
    assert world.state(job_id) is state
    return job_id


@pytest.mark.parametrize("state", [JobState.PENDING, JobState.HELD])
def test_a_waiting_job_is_cancelled_at_once(world: World, state: JobState) -> None:
    job_id = bring_to(world, state)

    assert verbs.cancel(world.gateway, ANNA, job_id).state is JobState.CANCELLED
    assert world.job(job_id).end_reason is EndReason.CANCELLED
    assert world.job(job_id).ended_at is not None


@pytest.mark.parametrize("state", STOPPED)
def test_a_started_job_is_stopped_and_then_cancelled(world: World, state: JobState) -> None:
    job_id = bring_to(world, state)

    assert verbs.cancel(world.gateway, ANNA, job_id).state is JobState.STOPPING
    assert world.held() == 16, "held until the pods are gone"
    world.cluster.set_unreachable(False)
    world.until(job_id, JobState.CANCELLED)
    assert world.is_idle()


def test_cancelling_twice_is_fine(world: World) -> None:
    running = bring_to(world, JobState.RUNNING)
    for _ in range(2):
        assert verbs.cancel(world.gateway, ANNA, running).state is JobState.STOPPING
    world.until(running, JobState.CANCELLED)
    assert verbs.cancel(world.gateway, ANNA, running).state is JobState.CANCELLED


@pytest.mark.parametrize("state", STOPPED)
def test_a_requeued_job_waits_again_and_runs_as_its_next_attempt(
    world: World, state: JobState
) -> None:
    job_id = bring_to(world, state)
    submitted_at = world.job(job_id).submitted_at

    verbs.requeue(world.gateway, ANNA, job_id)
    world.cluster.set_unreachable(False)
    world.until(job_id, JobState.PENDING)
    done = world.until(job_id, JobState.SUCCEEDED)

    assert done.attempt == 2
    assert done.submitted_at == submitted_at
    ends = [attempt.end_reason for attempt in job_attempts(world.gateway, ANNA, job_id)]
    assert ends == [EndReason.REQUEUED, EndReason.SUCCEEDED]
    assert world.is_idle()


def test_a_job_on_its_way_back_to_the_queue_can_be_cancelled(world: World) -> None:
    job_id = bring_to(world, JobState.RUNNING)
    verbs.requeue(world.gateway, ANNA, job_id)

    verbs.cancel(world.gateway, ANNA, job_id)

    world.until(job_id, JobState.CANCELLED)
    assert world.is_idle()


def test_a_held_job_is_not_considered_until_it_is_released(world: World) -> None:
    job_id = world.submit()
    assert verbs.hold(world.gateway, ANNA, job_id).reason is Reason.HELD
    world.turn()
    assert world.state(job_id) is JobState.HELD

    verbs.release(world.gateway, ANNA, job_id)
    world.until(job_id, JobState.RUNNING)


def test_priority_changes_while_a_job_waits(world: World) -> None:
    job_id = bring_to(world, JobState.PENDING)

    assert raise_priority(world.gateway, ANNA, job_id).priority == 7
    assert reprioritise(world.gateway, ANNA, job_id, NewPlace(priority=10**9)).priority == 10**9


REFUSED = [
    *[(verbs.hold, state) for state in JobState if state is not JobState.PENDING],
    *[(verbs.release, state) for state in JobState if state is not JobState.HELD],
    *[(verbs.requeue, state) for state in JobState if state not in STOPPED],
    *[(raise_priority, state) for state in (*STOPPED, JobState.STOPPING, *ENDED)],
    *[(verbs.cancel, state) for state in (JobState.SUCCEEDED, JobState.FAILED)],
]


@pytest.mark.parametrize(
    ("verb", "state"), REFUSED, ids=[f"{verb.__name__}-{state}" for verb, state in REFUSED]
)
def test_a_verb_that_does_not_apply_is_refused_and_changes_nothing(
    one_world: World, verb: Verb, state: JobState
) -> None:
    job_id = bring_to(one_world, state)
    before = one_world.job(job_id)

    with pytest.raises(InvalidTransition) as refused:
        verb(one_world.gateway, ANNA, job_id)

    assert refused.value.hint
    assert refused.value.value == state.value
    assert one_world.job(job_id) == before


def test_an_ended_job_is_not_requeued_but_says_how_to_submit_it_again(world: World) -> None:
    job_id = bring_to(world, JobState.SUCCEEDED)

    with pytest.raises(InvalidTransition) as refused:
        verbs.requeue(world.gateway, ANNA, job_id)
    assert f"submit --from {job_id}" in refused.value.hint


@pytest.mark.parametrize(
    "verb", [verbs.cancel, verbs.hold, verbs.release, verbs.requeue, raise_priority]
)
def test_another_tenants_job_is_as_unknown_as_none(world: World, verb: Verb) -> None:
    job_id = bring_to(world, JobState.PENDING)

    with pytest.raises(NotFound) as others:
        verb(world.gateway, BEN, job_id)
    with pytest.raises(NotFound) as nobodys:
        verb(world.gateway, BEN, "0" * 36)

    assert others.value.detail.replace(job_id, "") == nobodys.value.detail.replace("0" * 36, "")
    assert world.state(job_id) is JobState.PENDING
