"""What is asked again and again reads the few rows it is about, however long history grows.

SQLite says how it would answer each statement. It keeps no statistics here, so an empty database
tells the same as a large one.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from sqlalchemy import event

from gateway.api.metrics import Metrics
from gateway.core.vocabulary import JobState
from gateway.db.engine import Database, open_database
from gateway.service.explaining import explain
from gateway.service.queues import list_queues
from gateway.service.stopping import delete_finished
from tests.service_world import ADMIN, World, a_world

GROWING = frozenset({"jobs", "attempts", "charges", "assignments", "device_grants", "events"})
Statements = Mapping[str, Any]


@pytest.fixture
def world(sqlite_url: str) -> Iterator[World]:
    """Give a leader on SQLite, whose finished objects go after five seconds."""
    database = open_database(sqlite_url)
    yield a_world(database, keep_finished_seconds=5)
    database.close()


def listen(database: Database) -> Statements:
    """Collect every statement from now on, each with parameters of one execution."""
    heard: dict[str, Any] = {}

    def note(_connection: object, _cursor: object, *said: Any) -> None:
        statement, parameters, _context, is_many = said
        if statement.lstrip()[:6].upper() in {"SELECT", "UPDATE", "DELETE", "WITH R"}:
            heard.setdefault(statement, parameters[0] if is_many else parameters)

    for engine in {database.engine, database._writing}:
        event.listen(engine, "before_cursor_execute", note)
    return heard


def live(world: World) -> None:
    """Let a job live and end, another one run and a third one wait, and look at everything."""
    ended = world.submit(name="ended", gpu=4, script={"run-seconds": 3})
    world.submit(name="running", gpu=8, script={"run-seconds": 1000})
    waiting = world.submit(name="waiting", workers=1, queue_timeout_seconds=1000)
    world.until(ended, JobState.SUCCEEDED)
    for _ in range(10):
        world.turn()
        delete_finished(world.gateway)
    world.read_fleet()
    explain(world.gateway, ADMIN, waiting)
    list_queues(world.gateway, ADMIN)
    Metrics(world.gateway).render("text/plain")


def plans_of(world: World) -> Mapping[str, list[str]]:
    """Give how each statement of these lives is answered."""
    heard = listen(world.gateway.database)
    live(world)
    with world.gateway.database.read() as connection:
        run = connection.exec_driver_sql
        return {
            statement: [row[3] for row in run(f"EXPLAIN QUERY PLAN {statement}", parameters)]
            for statement, parameters in list(heard.items())
        }


def test_nothing_that_is_asked_again_and_again_reads_a_growing_table_through(world: World) -> None:
    through = {
        step: statement[:200]
        for statement, steps in plans_of(world).items()
        for step in steps
        if step.startswith("SCAN") and step.split()[1] in GROWING and " USING " not in step
    }

    assert not through


def test_the_few_are_found_by_indexes_of_their_own(world: World) -> None:
    used = " ".join(step for steps in plans_of(world).values() for step in steps)

    for index in (
        "ix_jobs_timed_waiting",
        "ix_attempts_undeleted",
        "ix_charges_live",
        "ix_assignments_live_node",
    ):
        assert index in used
