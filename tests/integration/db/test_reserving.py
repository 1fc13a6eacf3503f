"""Many gangs reserved at once: the rows of one by one, and nothing at all when one is amiss."""

import shutil
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select, update

from gateway.db import judge
from gateway.db.engine import Database, Writer, open_database
from gateway.db.grants import Grant, GrantConflict
from gateway.db.tables import (
    assignments,
    attempts,
    charges,
    device_grants,
    devices,
    jobs,
    node_amounts,
    nodes,
)
from gateway.errors import StaleVersion
from tests.db_rows import a_grant, a_pod, add_job, add_nodes, reserve, seen_node

TABLES = (jobs, attempts, assignments, charges, device_grants, devices, node_amounts)
VOLATILE = {"xact_id", "version"}
"""Numbers of transactions and counters of touches, which say how often and not what."""


def everything(database: Database) -> list[list[dict[str, Any]]]:
    with database.read() as connection:
        return [
            [
                {key: value for key, value in row.items() if key not in VOLATILE}
                for row in connection.execute(select(table).order_by(*table.primary_key)).mappings()
            ]
            for table in TABLES
        ]


def three_gangs(database: Database) -> list[Grant]:
    """Give gangs on two nodes: one GPU, two pods on both nodes, and one without devices."""
    add_nodes(database, seen_node("node-a"), seen_node("node-b"))
    ids = [add_job(database, name) for name in ("one", "two", "three")]
    return [
        a_grant(ids[0], a_pod(gpus=(0,))),
        a_grant(ids[1], a_pod(gpus=(1,)), a_pod(2, gpus=(0, 1), index=1, rank=1)),
        a_grant(ids[2], a_pod(2, gpus=()), charges=()),
    ]


def together(database: Database, grants: Sequence[Grant]) -> None:
    users = {grant.job_id: "ann" for grant in grants}
    with database.write() as writer, writer.savepoint():
        judge.reserve(writer, grants, users)


@pytest.fixture
def other_database(sqlite_template: Path, tmp_path: Path) -> Iterator[Database]:
    """Give a second database to compare with."""
    path = tmp_path / "other.db"
    shutil.copy(sqlite_template, path)
    opened = open_database(f"sqlite:///{path}")
    yield opened
    opened.close()


def test_together_they_leave_the_rows_that_they_leave_one_by_one(
    database: Database, other_database: Database
) -> None:
    for grant in three_gangs(other_database):
        other_database.run_write(partial(reserve, grant=grant))
    together(database, three_gangs(database))
    assert everything(database) == everything(other_database)


def spoil_version(writer: Writer) -> None:
    writer.connection.execute(update(jobs).where(jobs.c.name == "two").values(version=2))


def spoil_state(writer: Writer) -> None:
    writer.connection.execute(update(jobs).where(jobs.c.name == "two").values(state="held"))


def spoil_device(writer: Writer) -> None:
    is_it = (devices.c.node_id == 2) & (devices.c.ordinal == 1)
    writer.connection.execute(update(devices).where(is_it).values(is_foreign=True))


def spoil_node(writer: Writer) -> None:
    writer.connection.execute(update(nodes).where(nodes.c.id == 2).values(is_cordoned=True))


def spoil_amount(writer: Writer) -> None:
    is_it = (node_amounts.c.node_id == 2) & (node_amounts.c.resource == "cpu")
    # Room for one of the two pods there, so that only their sum is too much.
    writer.connection.execute(update(node_amounts).where(is_it).values(free=1_500))


@pytest.mark.parametrize(
    ("spoil", "error"),
    [
        (spoil_version, StaleVersion),
        (spoil_state, StaleVersion),
        (spoil_device, GrantConflict),
        (spoil_node, GrantConflict),
        (spoil_amount, GrantConflict),
    ],
)
def test_one_that_is_amiss_keeps_all_of_them_out(
    database: Database, spoil: Callable[[Writer], None], error: type[Exception]
) -> None:
    grants = three_gangs(database)
    database.run_write(spoil)
    before = everything(database)
    with pytest.raises(error):
        together(database, grants)
    assert everything(database) == before


def test_two_that_name_one_device_are_refused(database: Database) -> None:
    grants = three_gangs(database)
    twice = a_grant(grants[2].job_id, a_pod(gpus=(0,)))
    with pytest.raises(GrantConflict, match="same device"):
        together(database, [grants[0], twice])


def test_a_device_that_a_live_gang_holds_is_refused(database: Database) -> None:
    grants = three_gangs(database)
    together(database, grants[:1])
    late = a_grant(grants[2].job_id, a_pod(gpus=(0,)))
    with pytest.raises(GrantConflict, match="not free"):
        together(database, [grants[1], late])


def test_a_job_with_a_live_attempt_gets_no_second_one(database: Database) -> None:
    grants = three_gangs(database)
    together(database, grants)
    back = update(jobs).where(jobs.c.id == grants[2].job_id).values(state="pending", version=1)
    database.run_write(lambda writer: writer.connection.execute(back))
    again = a_grant(grants[2].job_id, a_pod(2, gpus=()), attempt=2)
    with pytest.raises(GrantConflict, match="collides"):
        together(database, [again])
