"""Submitting: once for each key, one live job for each name, refused when it could never run."""

import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import cast

import pytest
from sqlalchemy import FromClause, func, insert, select, update

from gateway.core.vocabulary import JobState
from gateway.db.engine import Row
from gateway.db.tables import events, jobs, namespace_defaults, queues, request_classes
from gateway.errors import Denied, GatewayError, InvalidInput, KeyReused, NameTaken, NeverFits
from gateway.manifests.remembering import alone
from gateway.schemas.job_spec import JobSpec
from gateway.service.alike import new_uid
from gateway.service.context import Caller
from gateway.service.jobs import JobFilter, list_jobs
from gateway.service.submit import Submitted, plan, submit, submit_batch
from gateway.service.verbs import cancel
from tests.service_world import ANNA, World, a_spec

BOTH = Caller(name="carla", namespaces=("team-a", "team-b"))


def count(world: World, table: FromClause) -> int:
    return int(world._scalar(select(func.count()).select_from(table)))


def submit_here(world: World, spec: JobSpec, key: str | None = None) -> Submitted:
    return submit(world.gateway, ANNA, spec, key)


def test_the_same_key_gives_the_same_job_again(world: World) -> None:
    first = submit_here(world, a_spec(), "k1")
    again = submit_here(world, a_spec(), "k1")

    assert (first.is_new, again.is_new) == (True, False)
    assert again.job == first.job
    assert (count(world, jobs), count(world, events.join(jobs))) == (1, 1)


def test_the_same_key_gives_the_same_job_even_after_it_ended(world: World) -> None:
    first = submit_here(world, a_spec(), "k1")
    world.until(first.job.id, JobState.SUCCEEDED)

    again = submit_here(world, a_spec(), "k1")

    assert not again.is_new
    assert again.job.state is JobState.SUCCEEDED


def test_a_key_with_another_body_is_refused(world: World) -> None:
    submit_here(world, a_spec(), "k1")

    with pytest.raises(KeyReused) as refused:
        submit_here(world, a_spec(priority=1), "k1")
    assert refused.value.status == 422
    assert count(world, jobs) == 1


def test_keys_of_two_namespaces_are_two_keys(world: World) -> None:
    spec = a_spec()
    first = submit(world.gateway, BOTH, spec, "k1")
    second = submit(world.gateway, BOTH, spec.model_copy(update={"namespace": "team-b"}), "k1")
    assert first.job.id != second.job.id


def test_a_storm_of_one_key_makes_one_job(world: World) -> None:
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda _: submit_here(world, a_spec(), "k1"), range(48)))

    assert len({answer.job.id for answer in answers}) == 1
    assert sum(answer.is_new for answer in answers) == 1
    assert count(world, jobs) == 1


def test_a_storm_of_one_name_makes_one_job(world: World) -> None:
    def attempt(number: int) -> str:
        try:
            return submit_here(world, a_spec(), f"k{number}").job.id
        except NameTaken:
            return ""

    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(attempt, range(48)))

    assert len([answer for answer in answers if answer]) == 1
    assert count(world, jobs) == 1


def test_a_live_name_is_taken_and_free_again_after_the_end(world: World) -> None:
    for _ in range(3):
        job_id = world.submit(name="daily")
        with pytest.raises(NameTaken) as refused:
            world.submit(name="daily")
        assert refused.value.hint
        world.until(job_id, JobState.SUCCEEDED)

    assert len(list_jobs(world.gateway, ANNA, JobFilter(name="daily")).items) == 3
    assert world.is_idle()


def test_the_same_name_runs_in_two_namespaces_at_once(world: World) -> None:
    first = world.submit(a_spec(), BOTH)
    second = world.submit(a_spec(namespace="team-b"), BOTH)

    world.until(first, JobState.RUNNING)
    assert world.state(second) is JobState.RUNNING


def test_a_foreign_namespace_is_denied(world: World) -> None:
    with pytest.raises(Denied) as refused:
        world.submit(namespace="team-b")
    assert refused.value.allowed == ("team-a",)
    assert count(world, jobs) == 0


def test_an_unknown_queue_is_refused_with_the_known_names(world: World) -> None:
    with pytest.raises(InvalidInput) as refused:
        world.submit(queue="defualt")
    assert refused.value.allowed == ("default",)
    assert "did you mean 'default'" in refused.value.hint
    assert count(world, jobs) == 0


def test_a_namespace_has_a_default_queue(world: World) -> None:
    values = {"priority_min": -5, "priority_max": 5, "namespaces": ["team-a"], "flavors": []}
    world.write(insert(queues).values(name="research", **values))
    world.write(insert(namespace_defaults).values(namespace="team-a", queue="research"))

    job = world.job(world.submit(priority=99))

    assert job.queue == "research"
    assert job.priority == 5, "clamped to the queue's range"


def test_a_queue_refuses_other_namespaces(world: World) -> None:
    world.write(update(queues).values(namespaces=["team-b"]))
    with pytest.raises(Denied) as refused:
        world.submit()
    assert refused.value.allowed == ("team-b",)


@pytest.mark.parametrize("key", ["", "k" * 256])
def test_a_key_of_a_wrong_length_is_refused(world: World, key: str) -> None:
    with pytest.raises(InvalidInput):
        submit_here(world, a_spec(), key)


def test_a_gang_that_can_never_fit_is_refused_with_the_largest_place(world: World) -> None:
    with pytest.raises(NeverFits) as refused:
        world.submit(gpu=12)
    assert "8 GPUs" in refused.value.detail
    with pytest.raises(NeverFits):
        world.submit(gpu=8, workers=2)
    assert count(world, jobs) == 0


def test_a_plan_checks_everything_and_stores_nothing(world: World) -> None:
    answer = plan(world.gateway, ANNA, a_spec(workers=1))

    assert (answer.queue, answer.pods, answer.gpus, answer.rdma) == ("default", 2, 16, 16)
    assert count(world, jobs) == 0
    with pytest.raises(NeverFits):
        plan(world.gateway, ANNA, a_spec(gpu=12))
    world.submit()
    with pytest.raises(NameTaken):
        plan(world.gateway, ANNA, a_spec())


def test_each_job_of_a_batch_passes_or_fails_alone(world: World) -> None:
    specs = [
        (a_spec("one"), "k1"),
        (a_spec("two", gpu=12), None),
        (a_spec("one"), None),
        (a_spec("three", namespace="team-b"), None),
        (a_spec("four", queue="nowhere"), None),
        (a_spec("one"), "k1"),
        (a_spec("five", gpu=1), None),
    ]

    outcomes = submit_batch(world.gateway, ANNA, [(alone(spec), key) for spec, key in specs])

    told = [each.code if isinstance(each, GatewayError) else each.is_new for each in outcomes]
    assert told == [True, "never_fits", "name_taken", "denied", "invalid", False, True]
    first, again = outcomes[0], outcomes[5]
    assert isinstance(first, Submitted)
    assert isinstance(again, Submitted)
    assert again.job == first.job
    assert count(world, jobs) == 2
    submit_batch(world.gateway, ANNA, [(alone(a_spec(name)), None) for name in ("five", "six")])
    submitted = select(events.c.job_id).where(events.c.kind == "submitted")
    with world.gateway.database.read() as connection:
        told_of = connection.execute(submitted).scalars().all()
    assert len(set(told_of)) == len(told_of) == count(world, jobs) == 3


def test_equal_requests_share_one_class(world: World) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: submit_here(world, a_spec(f"job-{n}")), range(24)))
    assert count(world, request_classes) == 1


def test_a_job_may_be_submitted_held(world: World) -> None:
    job_id = world.submit(hold=True)
    assert world.state(job_id) is JobState.HELD
    cancel(world.gateway, ANNA, job_id)


def test_public_ids_are_unique_and_in_order_of_time() -> None:
    ids = [new_uid(at_us) for at_us in range(0, 5_000_000, 1000)]
    assert len(set(ids)) == len(ids)
    assert ids == sorted(ids)
    assert {uuid.UUID(each).version for each in ids} == {7}
    assert {uuid.UUID(each).variant for each in ids} == {uuid.RFC_4122}


def test_a_queue_that_went_since_it_was_remembered_is_told_as_unknown(world: World) -> None:
    world.submit()
    remembered = world.gateway.remembered
    gone = dict(next(iter(remembered.book.queues.values())), name="gone")
    remembered.book = replace(
        remembered.book, queues={**remembered.book.queues, "gone": cast(Row, gone)}
    )
    world.gateway.mirror.feasible.possible.update(
        ("gone", request) for _, request in list(world.gateway.mirror.feasible.possible)
    )
    if world.gateway.database.is_sqlite:
        return  # the one writer cannot be overtaken by who deletes
    with pytest.raises(InvalidInput, match="'gone' does not exist"):
        world.submit(name="late", queue="gone")
