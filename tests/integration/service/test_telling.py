"""What people read of why jobs wait stays true when commits are lost and leaders change."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import pytest
from sqlalchemy import update

from gateway.core.vocabulary import JobState, PairRule, Reason
from gateway.db.engine import Database, Writer
from gateway.db.mirror_reading import read_waiting
from gateway.db.state import bump_generation
from gateway.db.tables import class_holds, jobs, leader_lease
from gateway.errors import DatabaseUnavailable
from gateway.service.context import Gateway, MirrorState
from gateway.service.cycle import run_cycle
from gateway.service.leading import keep_leading
from gateway.service.queues import pause_queue, resume_queue
from tests.service_world import ADMIN, Between, World, a_replica, a_world


def lead(world: World, gateway: Gateway) -> None:
    """Let a gateway take the lease from whoever has it."""
    world.write(update(leader_lease).values(expires_us=0))
    world.write(update(leader_lease).values(holder=""))
    assert keep_leading(gateway)


def a_waiter(world: World) -> str:
    """Give a job that waits for the nodes of another one, and of which nothing was told yet."""
    world.until(world.submit(name="first", workers=1), JobState.RUNNING)
    return world.submit(name="second", workers=1, pair=PairRule.NODE)


def test_a_job_of_a_class_that_came_during_a_cold_start_is_not_set_aside(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    late: list[str] = []
    world.submit(gpu=1)
    # Another process of the same gateway takes a job meanwhile.
    other = replace(world, gateway=replace(world.gateway))
    world.gateway.mirror = MirrorState()

    def read_late(database: Database) -> Any:
        if not late:
            late.append(other.submit(name="late", gpu=3))
        return read_waiting(database)

    monkeypatch.setattr("gateway.service.mirroring.read_waiting", read_late)
    world.decide()

    assert not world.job_row(late[0])["is_quarantined"]
    world.until(late[0], JobState.RUNNING)


class Lossy:
    """A database that loses each commit of reasons, as if its server went away during it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def run_write(self, work: Callable[[Writer], Any]) -> Any:
        if getattr(work, "func", work).__name__ != "_store_holds":
            return self._database.run_write(work)
        with self._database.write() as writer:
            work(writer)
            raise DatabaseUnavailable("the server went away", hint="try again")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._database, name)


@pytest.mark.parametrize("is_paused", [True, False])
def test_reasons_whose_commit_was_lost_are_told_by_the_next_cycle(
    world: World, *, is_paused: bool
) -> None:
    job_id, database = a_waiter(world), world.gateway.database
    if is_paused:
        pause_queue(world.gateway, ADMIN, "default")
    world.gateway.database = cast("Database", Lossy(database))
    with pytest.raises(DatabaseUnavailable):
        world.decide()
    world.gateway.database = database
    assert world.job(job_id).reason is Reason.NOT_REACHED
    world.decide()

    assert (world.job(job_id).reason is Reason.QUEUE_PAUSED) == is_paused
    assert world.job(job_id).reason is not Reason.NOT_REACHED


def test_reasons_that_came_too_late_for_a_change_are_told_by_the_next_cycle(
    world: World, between: Between
) -> None:
    job_id = a_waiter(world)
    between(lambda _: world.gateway.database.run_write(bump_generation))
    world.decide()
    assert world.job(job_id).reason is Reason.NOT_REACHED
    world.decide()

    assert world.job(job_id).reason is not Reason.NOT_REACHED


def test_who_leads_again_tells_what_holds_now(shared: World) -> None:
    first, other = shared.gateway, a_replica(shared)
    job_id = shared.submit(gpu=1)
    pause_queue(first, ADMIN, "default")
    run_cycle(first)
    lead(shared, other)
    resume_queue(other, ADMIN, "default")
    other.settings = other.settings.model_copy(update={"max_unlaunched": 0})
    run_cycle(other)
    assert shared.job(job_id).reason is not Reason.QUEUE_PAUSED
    pause_queue(other, ADMIN, "default")
    lead(shared, first)
    run_cycle(first)

    assert shared.job(job_id).reason is Reason.QUEUE_PAUSED


def test_who_leads_again_replaces_what_another_leader_told(world: World) -> None:
    job_id = a_waiter(world)
    world.decide()
    true = world.class_hold(job_id)["reason"]
    # What another leader told last, of a moment that has passed.
    world.write(update(class_holds).values(reason=Reason.BEHIND_PRIORITY))
    lead(world, world.gateway)
    world.decide()

    assert world.class_hold(job_id)["reason"] == true


def test_jobs_that_are_set_aside_do_not_throttle_the_others(database: Database) -> None:
    world = a_world(database, max_unlaunched=1)
    world.submit(name="odd", gpu=1)
    world.decide()
    world.write(update(jobs).values(is_quarantined=True))
    healthy = world.submit(name="healthy", gpu=1)
    world.decide()

    assert world.state(healthy) is JobState.RESERVED
