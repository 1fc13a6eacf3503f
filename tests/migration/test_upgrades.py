"""An upgrade keeps what a database holds, and fills in what the new columns mean for it."""

from collections.abc import Iterator

import pytest
from alembic import command
from sqlalchemy import column, insert, inspect, table, text

from gateway.db.engine import Database, Writer, open_database
from gateway.db.migrations import configuration, newest_revision, upgrade

OLD = "0002"
RESEARCH = {"priority_min": -5, "priority_max": 5, "namespaces": '["*"]', "flavors": "[]"}
JOB = {"uid": "u", "name": "train", "namespace": "team-a", "user_name": "ann", "spec": "{}"}
SHAPE = {"spec_digest": "d", "class_id": 1, "priority": 4, "pods": 1, "gpus": 1, "rdma": 0}
LIFE = {"state": "pending", "start_timeout_seconds": 60, "submitted_us": 100, "xact_id": 1}
ATTEMPT = {"job_id": 1, "epoch": 1, "backend": "local", "guarantee": "advisory", "object_name": "a"}
CHARGE = {"queue": "research", "flavor": "h100", "resource": "gpu", "amount": 1, "xact_id": 1}
QUOTA = {"owner_kind": "queue", "owner": "research", "flavor": "h100", "resource": "gpu"}
CLOSED = {"phase": "closed", "reserved_us": 110, "closed_us": 120}
ROWS: tuple[tuple[str, dict[str, object]], ...] = (
    ("gateway_state", {"id": 1}),
    ("flavors", {"name": "h100", "node_labels": "{}", "tolerations": "[]"}),
    ("queues", {"name": "research", "weight": 3, **RESEARCH}),
    ("quotas", {**QUOTA, "nominal": 8}),
    ("request_classes", {"id": 1, "digest": "d", "shape": "[]", "xact_id": 1}),
    ("jobs", {"id": 1, "queue": "research", **JOB, **SHAPE, **LIFE}),
    ("attempts", {"id": 1, "number": 1, **ATTEMPT, **CLOSED}),
    ("attempts", {"id": 2, "number": 2, **ATTEMPT, "phase": "open", "reserved_us": 130}),
    ("charges", {"attempt_id": 1, "is_live": False, **CHARGE}),
    ("charges", {"attempt_id": 2, "is_live": True, **CHARGE}),
)
NEW_TABLES = ("priority_classes", "dated_changes", "queue_holds", "node_holds", "user_usage")


@pytest.fixture
def old(empty_database_url: str) -> Iterator[tuple[str, Database]]:
    """Give a database of the revision before, with a queue, a job and two attempts."""
    database = open_database(empty_database_url)
    with database.write() as writer:
        command.upgrade(configuration(writer.connection), OLD)
        for name, values in ROWS:
            # Tables of that time: the declared ones know columns that are not there yet.
            target = table(name, *map(column, values))
            writer.connection.execute(insert(target).values(values))
    yield empty_database_url, database
    database.close()


def rows_of(database: Database, statement: str) -> list[tuple[object, ...]]:
    """Give what a statement finds, as plain tuples."""
    with database.read() as connection:
        return [tuple(row) for row in connection.execute(text(statement))]


def test_an_upgrade_keeps_jobs_queues_and_quotas(old: tuple[str, Database]) -> None:
    url, database = old
    assert upgrade(url) == newest_revision()
    jobs = "SELECT name, priority, rank, eligible_us, deadline_us, priority_class FROM jobs"
    assert rows_of(database, jobs) == [("train", 4, 0, 0, 0, "")]
    queues = "SELECT name, weight, order_policy, blocking, when_can_borrow, budget FROM queues"
    assert rows_of(database, queues) == [
        ("research", 3, "priority", "best_effort", "borrow", None),
    ]
    assert rows_of(database, "SELECT owner, nominal FROM quotas") == [("research", 8)]


def test_an_upgrade_tells_old_charges_whose_they_are_and_when(old: tuple[str, Database]) -> None:
    url, database = old
    upgrade(url)
    charges = "SELECT user_name, reserved_us, closed_us FROM charges ORDER BY attempt_id"
    assert rows_of(database, charges) == [("ann", 110, 120), ("ann", 130, None)]


def test_a_downgrade_keeps_what_the_older_schema_knows(old: tuple[str, Database]) -> None:
    url, database = old
    upgrade(url)

    def down(writer: Writer) -> None:
        command.downgrade(configuration(writer.connection), OLD)

    database.run_write(down)
    assert rows_of(database, "SELECT name, gpus FROM jobs") == [("train", 1)]
    assert rows_of(database, "SELECT amount FROM charges") == [(1,), (1,)]
    assert upgrade(url) == newest_revision()
    with database.read() as connection:
        assert set(NEW_TABLES) <= set(inspect(connection).get_table_names())
