"""Rows of held nodes: replaced as a whole, and read by mirrors only when they changed."""

from sqlalchemy import func, select

from gateway.core.admission.types import NodeHold
from gateway.db.engine import Database, Writer
from gateway.db.node_holds import read_node_holds, store_node_holds
from gateway.db.tables import node_holds

LARGE = NodeHold(flavor="large", job_id=7, node_ids=(1, 2))
SMALL = NodeHold(flavor="small", job_id=8, node_ids=(3,))


def store(database: Database, *holds: NodeHold) -> tuple[NodeHold, ...]:
    def write(writer: Writer) -> tuple[NodeHold, ...]:
        return store_node_holds(writer, holds, 1)

    return database.run_write(write)


def read(database: Database, horizon: int = 0) -> tuple[NodeHold, ...] | None:
    with database.read() as connection:
        return read_node_holds(connection, horizon)


def newest(database: Database) -> int:
    with database.read() as connection:
        return int(connection.execute(select(func.max(node_holds.c.xact_id))).scalar_one())


def test_nothing_was_ever_held(database: Database) -> None:
    assert read(database) is None


def test_holds_are_read_as_they_were_stored_and_only_new_ones_are_told(database: Database) -> None:
    assert store(database, SMALL, LARGE) == (LARGE, SMALL)
    assert store(database, SMALL, LARGE) == ()
    assert read(database) == (LARGE, SMALL)


def test_a_hold_that_ended_is_a_change_to_whoever_reads_from_a_horizon(database: Database) -> None:
    store(database, LARGE, SMALL)
    seen = newest(database) + 1
    assert read(database, seen) is None
    store(database, SMALL)
    assert read(database, newest(database)) == (SMALL,)


def test_other_nodes_for_the_same_flavor_take_the_place_of_the_former(database: Database) -> None:
    store(database, LARGE)
    moved = NodeHold(flavor="large", job_id=9, node_ids=(5,))
    assert store(database, moved) == (moved,)
    assert read(database) == (moved,)
