"""Caps on waiting jobs hold at the door, however many knock at the same time."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from gateway.core.vocabulary import JobState
from gateway.db.engine import open_database
from gateway.db.submissions import Remembered
from gateway.errors import NameTaken, OverCap
from gateway.manifests.remembering import alone
from gateway.schemas.definitions import QueueSpec
from gateway.schemas.queue_rules import CapsSpec
from gateway.service import queues
from gateway.service.context import Caller, Gateway
from gateway.service.submit import Submitted, plan, submit, submit_batch
from gateway.service.verbs import cancel, hold
from tests.service_world import ADMIN, ANNA, World, a_spec

CARLA = Caller(name="carla", namespaces=("team-a",))


def set_caps(world: World, **caps: int) -> None:
    """Give queue `default` these caps."""
    spec = QueueSpec(name="default", caps=CapsSpec(**caps))
    queues.update_queue(world.gateway, ADMIN, "default", spec)


def batch_kinds(world: World, *jobs: tuple[str, str | None]) -> list[str]:
    """Submit a batch of (name, key); say of each what came of it."""
    read = [(alone(a_spec(name)), key) for name, key in jobs]
    return [type(item).__name__ for item in submit_batch(world.gateway, ANNA, read)]


def test_a_full_queue_refuses_a_further_job_and_says_what_to_do(world: World) -> None:
    set_caps(world, queued_jobs=2)
    first = world.submit(name="one")
    world.submit(name="two")
    with pytest.raises(OverCap) as refused:
        world.submit(name="three", caller=CARLA)
    error = refused.value
    assert (error.code, error.status, error.pointer) == ("over_cap", 409, "/queue")
    assert error.detail == "there are 2 waiting jobs in queue default, which takes 2 altogether"
    assert "cancel some" in error.hint
    cancel(world.gateway, ANNA, first)
    world.submit(name="three", caller=CARLA)


def test_held_jobs_count_and_running_ones_do_not(world: World) -> None:
    set_caps(world, queued_jobs=1)
    job = world.submit(name="one", script={"run-seconds": 1000})
    world.until(job, JobState.RUNNING)
    hold(world.gateway, ANNA, world.submit(name="two"))
    with pytest.raises(OverCap):
        world.submit(name="three")


def test_a_users_cap_is_a_matter_of_that_user_alone(world: World) -> None:
    set_caps(world, user_queued_jobs=1)
    world.submit(name="one")
    with pytest.raises(OverCap, match=r"anna has 1 waiting jobs .* takes 1 of one user"):
        world.submit(name="two")
    world.submit(name="two", caller=CARLA)


def test_a_job_larger_than_the_cap_is_refused_and_a_smaller_one_is_not(world: World) -> None:
    set_caps(world, gpus_per_job=8)
    with pytest.raises(OverCap, match="asks for 16 GPUs, and queue default takes 8 in one job"):
        world.submit(name="wide", workers=1)
    world.submit(name="narrow")


@pytest.mark.parametrize("cap", ["queued_jobs", "user_queued_jobs", "gpus_per_job"])
def test_a_cap_of_nothing_lets_nothing_in_and_a_dry_run_says_so(world: World, cap: str) -> None:
    set_caps(world, **{cap: 0})
    with pytest.raises(OverCap):
        plan(world.gateway, ANNA, a_spec())
    with pytest.raises(OverCap):
        submit(world.gateway, ANNA, a_spec(), None)


def test_a_repeated_key_gets_its_job_from_a_full_queue(world: World) -> None:
    set_caps(world, queued_jobs=1)
    first = submit(world.gateway, ANNA, a_spec(), "k")
    again = submit(world.gateway, ANNA, a_spec(), "k")
    assert (again.job_id, again.is_new) == (first.job_id, False)


def test_a_batch_fills_the_room_and_the_rest_is_refused(world: World) -> None:
    set_caps(world, queued_jobs=2)
    jobs = [(name, None) for name in ("one", "two", "three")]
    assert batch_kinds(world, *jobs) == ["Submitted", "Submitted", "OverCap"]


def test_what_was_there_already_takes_no_room_in_a_batch(world: World) -> None:
    set_caps(world, queued_jobs=3)
    submit(world.gateway, ANNA, a_spec("one"), "k1")
    world.submit(name="two")
    kinds = batch_kinds(world, ("one", "k1"), ("two", None), ("three", "k3"), ("four", None))
    assert kinds == ["Submitted", NameTaken.__name__, "Submitted", "OverCap"]


def second_replica(gateway: Gateway) -> Gateway:
    """Give another process's view of the same database."""
    url = gateway.database.engine.url.render_as_string(hide_password=False)
    database = open_database(url.replace("+psycopg", ""))
    return replace(gateway, database=database, remembered=Remembered())


@pytest.mark.parametrize(
    ("caps", "stored"), [({"queued_jobs": 5}, 5), ({"user_queued_jobs": 3}, 6)]
)
def test_no_two_submits_get_the_last_place(world: World, caps: dict[str, int], stored: int) -> None:
    set_caps(world, **caps)
    replicas = [world.gateway, second_replica(world.gateway)]

    def attempt(number: int) -> str:
        caller = ANNA if number % 4 < 2 else CARLA
        try:
            outcome: Any = submit(replicas[number % 2], caller, a_spec(f"job-{number}"), None)
        except OverCap as error:
            outcome = error
        return type(outcome).__name__

    with ThreadPoolExecutor(8) as pool:
        came = Counter(pool.map(attempt, range(24)))
    replicas[1].database.close()
    assert came == {Submitted.__name__: stored, "OverCap": 24 - stored}
    assert queues.get_queue(world.gateway, ADMIN, "default").pending == stored
