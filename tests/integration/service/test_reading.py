"""Reading jobs: pages, filters, tenants, histories, logs, explanations, readiness."""

import pytest

from gateway.core.vocabulary import JobState, Reason
from gateway.errors import InvalidInput, NotFound
from gateway.service.explaining import explain
from gateway.service.health import readiness
from gateway.service.jobs import (
    JobFilter,
    all_events,
    get_job,
    job_assignments,
    job_attempts,
    job_events,
    list_jobs,
)
from gateway.service.logs import LogOptions, job_logs
from gateway.service.stopping import delete_finished
from gateway.service.verbs import cancel, hold
from tests.service_world import ADMIN, ANNA, BEN, World, a_spec


def names(world: World, wanted: JobFilter) -> set[str]:
    return {job.name for job in list_jobs(world.gateway, ANNA, wanted).items}


@pytest.fixture
def three(world: World) -> World:
    """Give three small jobs of one tenant and one of another."""
    world.submit(a_spec("one", gpu=1, labels={"team.example/model": "llm", "stage": "a"}))
    world.clock.advance(10)
    world.submit(a_spec("two", gpu=1, labels={"team.example/model": "llm"}, hold=True))
    world.submit(a_spec("three", gpu=1))
    world.submit(a_spec("other", gpu=1, namespace="team-b"), BEN)
    return world


def test_pages_show_every_job_once_newest_first(three: World) -> None:
    seen, cursor = [], ""
    for _ in range(3):
        page = list_jobs(three.gateway, ADMIN, JobFilter(), cursor, 2)
        seen += [job.name for job in page.items]
        cursor = page.next_cursor
        if not cursor:
            break
    assert seen == ["other", "three", "two", "one"]


def test_jobs_are_found_by_what_they_are(three: World) -> None:
    since = list_jobs(three.gateway, ANNA, JobFilter(name="one")).items[0].submitted_at
    assert names(three, JobFilter()) == {"one", "two", "three"}
    assert names(three, JobFilter(states=("held",))) == {"two"}
    assert names(three, JobFilter(reason="Held")) == {"two"}
    assert names(three, JobFilter(user="ben")) == set()
    assert names(three, JobFilter(namespace="team-b")) == set()
    assert names(three, JobFilter(queue="nowhere")) == set()
    assert names(three, JobFilter(labels=(("team.example/model", "llm"),))) == {"one", "two"}
    assert names(three, JobFilter(labels=(("team.example/model", "llm"), ("stage", "a")))) == {
        "one"
    }
    later = int(since.timestamp() * 1_000_000) + 1
    assert names(three, JobFilter(since_us=later)) == {"two", "three"}


def test_a_made_up_cursor_is_refused(world: World) -> None:
    for cursor in ("x", "-1", "9" * 30, "1 OR 1=1"):
        with pytest.raises(InvalidInput):
            list_jobs(world.gateway, ANNA, JobFilter(), cursor)


def test_another_tenant_reads_nothing_of_a_job(three: World) -> None:
    job_id = list_jobs(three.gateway, ANNA, JobFilter(name="one")).items[0].id
    for read in (get_job, job_events, job_attempts, job_assignments, explain):
        with pytest.raises(NotFound):
            read(three.gateway, BEN, job_id)
    with pytest.raises(NotFound):
        job_logs(three.gateway, BEN, job_id, LogOptions())
    assert {event.job_id for event in all_events(three.gateway, BEN).items} == {
        job.id for job in list_jobs(three.gateway, BEN, JobFilter()).items
    }


def test_logs_are_live_first_and_kept_after_the_object_is_gone(world: World) -> None:
    job_id = world.submit(workers=1)
    with pytest.raises(NotFound, match="has not started"):
        job_logs(world.gateway, ANNA, job_id, LogOptions())
    world.until(job_id, JobState.RUNNING)
    live = list(job_logs(world.gateway, ANNA, job_id, LogOptions(rank=1)))
    assert live[0].startswith("rank 1 of train-")

    world.until(job_id, JobState.SUCCEEDED)
    world.clock.advance(3601)
    assert delete_finished(world.gateway) == 1
    assert world.objects() == 0

    kept = list(job_logs(world.gateway, ANNA, job_id, LogOptions(rank=1)))
    assert kept == [*live, "rank 1 exited with code 0"]
    assert list(job_logs(world.gateway, ANNA, job_id, LogOptions(rank=1, tail=1))) == kept[-1:]
    with pytest.raises(NotFound) as refused:
        job_logs(world.gateway, ANNA, job_id, LogOptions(rank=2))
    assert refused.value.allowed == ("0 to 1",)


def test_a_cancelled_jobs_logs_are_kept_too(world: World) -> None:
    job_id = world.submit()
    world.until(job_id, JobState.RUNNING)
    cancel(world.gateway, ANNA, job_id)
    world.until(job_id, JobState.CANCELLED)

    lines = list(job_logs(world.gateway, ANNA, job_id, LogOptions()))
    assert lines[0].startswith("rank 0 of train-")


def test_explain_answers_in_every_state(world: World) -> None:
    job_id = world.submit(script={"delete-seconds": 5})

    def told() -> str:
        return explain(world.gateway, ANNA, job_id).summary

    assert "no cycle has looked at it yet" in told()
    hold(world.gateway, ANNA, job_id)
    assert "it is held" in told()
    other = world.submit(name="other", workers=1)
    world.until(other, JobState.RUNNING)
    assert "dgx-h100-0, dgx-h100-1" in explain(world.gateway, ANNA, other).summary
    cancel(world.gateway, ANNA, other)
    assert "stopping (cancelled)" in explain(world.gateway, ANNA, other).summary
    world.until(other, JobState.CANCELLED)
    assert "cancelled by anna" in explain(world.gateway, ANNA, other).summary


def test_what_no_cycle_decided_is_told_as_of_the_last_one(world: World) -> None:
    held, running = world.submit(name="held", hold=True), world.submit(name="running")
    world.until(running, JobState.RUNNING)
    serials = {explain(world.gateway, ANNA, job_id).serial for job_id in (held, running)}
    world.turn()
    later = {explain(world.gateway, ANNA, job_id).serial for job_id in (held, running)}
    assert min(serials) > 0
    assert later == {serial + 1 for serial in serials}


def test_position_counts_only_those_ahead_in_the_queue(world: World) -> None:
    world.until(world.submit(name="first", workers=1), JobState.RUNNING)
    ids = [world.submit(name=f"job-{n}", priority=n) for n in range(3)]
    world.submit(name="held", priority=9, hold=True)
    world.turn()

    answers = [explain(world.gateway, ANNA, job_id) for job_id in ids]
    assert [answer.position for answer in answers] == [3, 2, 1]
    assert [answer.jobs_ahead for answer in answers] == [2, 1, 0]
    assert {answer.reason for answer in answers} == {Reason.GANG_DOES_NOT_FIT}
    assert all(answer.serial and answer.unblock for answer in answers)


def test_readiness_needs_the_database_only(world: World) -> None:
    assert readiness(world.gateway).status == "ok"
    world.cluster.set_unreachable(True)
    seen = readiness(world.gateway)
    assert seen.status == "ok"
    assert seen.checks["cluster"] != "ok"
