"""Nodes stay held for a starving job through commits, restarts and lost transactions."""

from dataclasses import replace

import pytest
from sqlalchemy import select

from gateway.core.vocabulary import JobState, Reason
from gateway.db.node_holds import NOBODY
from gateway.db.tables import node_holds
from gateway.errors import DatabaseUnavailable
from gateway.service.context import MirrorState
from gateway.service.explaining import explain
from gateway.service.verbs import cancel
from tests.service_world import ANNA, World, a_spec

AFTER_SECONDS = 1801
SOON, LATE, ENDLESS = ({"run-seconds": n} for n in (2000, 4000, 10**7))


def fill(world: World) -> tuple[str, str, str]:
    """Let two gangs take a node each, one of them longer, and let a third want both."""
    soon, late = (
        world.submit(a_spec(name, script=script)) for name, script in (("a", SOON), ("b", LATE))
    )
    world.until(soon, JobState.RUNNING)
    world.until(late, JobState.RUNNING)
    return soon, late, world.submit(name="large", workers=1)


def starve(world: World) -> tuple[str, str]:
    """Let the large gang starve, then let a node come free; gives it and a small one."""
    soon, _, large = fill(world)
    world.turn()
    world.turn(AFTER_SECONDS)
    small = world.submit(a_spec("small", script=ENDLESS))
    world.turn(400)
    world.until(soon, JobState.SUCCEEDED)
    world.turn()
    return large, small


def holders(world: World) -> list[int]:
    """Give the jobs that hold nodes."""
    with world.gateway.database.read() as connection:
        jobs = connection.execute(select(node_holds.c.job_id)).scalars()
        return [job_id for job_id in jobs if job_id != NOBODY]


def restart(world: World) -> None:
    """Let the process forget everything, as after a kill."""
    world.gateway = replace(world.gateway, mirror=MirrorState())


def test_a_starving_gang_keeps_its_nodes_through_restarts_and_starts(world: World) -> None:
    large, small = starve(world)
    assert holders(world) == [world.job_row(large)["id"]]
    assert "nodes_held" in world.kinds(large)
    for _ in range(3):
        restart(world)
        world.turn()
        assert world.state(small) is JobState.PENDING
    world.turn(2000)
    world.until(large, JobState.RUNNING)
    assert world.job_row(large)["id"] not in holders(world)
    assert world.state(small) is JobState.PENDING


def test_who_is_kept_off_is_told_for_whom_by_size_alone(world: World) -> None:
    _, small = starve(world)
    told = explain(world.gateway, ANNA, small)
    assert told.reason is Reason.RESERVED_FOR_OTHER
    assert told.summary.endswith("held for a 16-GPU job of queue default")
    assert "a 16-GPU job of queue default to leave" in told.unblock


def test_once_the_holder_is_cancelled_the_others_start(world: World) -> None:
    large, small = starve(world)
    cancel(world.gateway, ANNA, large)
    world.turn()
    world.turn()
    assert world.state(small) is not JobState.PENDING
    assert holders(world) == []
    restart(world)
    world.turn()
    assert world.gateway.mirror.mirror.state.node_holds == ()


def test_a_hold_whose_commit_was_lost_is_made_by_the_next_cycle(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, _, large = fill(world)
    world.turn()
    world.clock.advance(AFTER_SECONDS)

    def lose(*_: object) -> None:
        raise DatabaseUnavailable("gone")

    with monkeypatch.context() as patch:
        patch.setattr("gateway.service.committing.store_node_holds", lose)
        with pytest.raises(DatabaseUnavailable):
            world.decide()
    assert holders(world) == []
    world.decide()
    assert holders(world) == [world.job_row(large)["id"]]
