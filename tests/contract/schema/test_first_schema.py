"""Every rule of the first schema refuses what it names, and lets through what stands beside it."""

import re
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from alembic import command
from sqlalchemy import Connection, TableClause, column, inspect, text
from sqlalchemy import table as sql_table
from sqlalchemy.exc import IntegrityError

from gateway.db.engine import Database, open_database
from gateway.db.migrations import configuration

REVISION = "0002"
ROWS: dict[str, dict[str, Any]] = {
    "cohorts": {"name": "all"},
    "flavors": {"name": "fast"},
    "gateway_state": {"id": 1},
    "leader_lease": {"id": 1},
    "queues": {"name": "q", "cohort": "all", "priority_min": -1, "priority_max": 1},
    "nodes": {"id": 1, "name": "n1", "health": "healthy"},
    "devices": {"id": 1, "node_id": 1, "kind": "gpu", "ordinal": 0, "health": "healthy"},
    "node_amounts": {"node_id": 1, "resource": "cpu", "free": 5},
    "request_classes": {"id": 1, "digest": "d"},
    "class_holds": {"queue": "q", "class_id": 1},
    "jobs": {"id": 1, "uid": "u", "name": "j", "namespace": "a", "class_id": 1, "state": "pending"},
    "quotas": {
        "owner_kind": "queue",
        "owner": "q",
        "flavor": "fast",
        "resource": "r",
        "nominal": 9,
    },
    "attempts": {"id": 1, "job_id": 1, "number": 1, "phase": "intended"},
    "events": {"id": 1, "job_id": 1, "kind": "submitted"},
    "namespace_defaults": {"namespace": "a", "queue": "q"},
    "assignments": {"id": 1, "attempt_id": 1, "pod_set": "Worker", "pod_index": 0, "node_id": 1},
    "charges": {"id": 1, "attempt_id": 1, "flavor": "fast", "resource": "r"},
    "log_tails": {"attempt_id": 1, "rank": 0},
    "device_grants": {"id": 1, "assignment_id": 1, "device_id": 1, "units": 100, "is_whole": True},
}
"""One sound row of each table, in an order in which parents come first; the rest is filled in."""


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    opened = open_database(f"sqlite:///{tmp_path_factory.mktemp('schema') / 'gateway.db'}")
    with opened.write() as writer:
        command.upgrade(configuration(writer.connection), REVISION)
        for table, row in ROWS.items():
            insert(writer.connection, table, **row)
    yield opened
    opened.close()


@pytest.fixture
def connection(database: Database) -> Iterator[Connection]:
    """Give a transaction that is rolled back."""
    with database.engine.connect() as opened:
        yield opened
        opened.rollback()


def insert(connection: Connection, table: str, **values: Any) -> None:
    """Insert a row; what must be told and is not gets a value of its type."""
    for told in inspect(connection).get_columns(table):
        must_be_told = not told["nullable"] and told["default"] is None
        if must_be_told and told["name"] not in values:
            is_text = re.match("VARCHAR|TEXT|JSON", str(told["type"]))
            values[told["name"]] = "{}" if is_text else 0
    connection.execute(rows_of(table, values).insert().values(**values))


def change(connection: Connection, table: str, **values: Any) -> None:
    """Change the one row of a table."""
    connection.execute(rows_of(table, values).update().values(**values))


def rows_of(name: str, values: Iterable[str] = ()) -> TableClause:
    return sql_table(name, *map(column, values))


def refusal(connection: Connection, table: str, **values: Any) -> str:
    with pytest.raises(IntegrityError) as caught:
        change(connection, table, **values)
    return str(caught.value.orig)


ENDED = {"ended_us": 5}


@pytest.mark.parametrize(
    ("table", "values", "rule"),
    [
        ("cohorts", {"weight": -1}, "ck_cohorts_weight_not_negative"),
        ("gateway_state", {"id": 2}, "ck_gateway_state_single_row"),
        ("leader_lease", {"id": 0}, "ck_leader_lease_single_row"),
        ("queues", {"state": "closed"}, "ck_queues_state"),
        ("queues", {"weight": -1}, "ck_queues_weight_not_negative"),
        ("queues", {"priority_min": 2}, "ck_queues_priority_range"),
        ("nodes", {"health": "ill"}, "ck_nodes_health"),
        ("devices", {"health": "Healthy"}, "ck_devices_health"),
        ("devices", {"kind": "tpu"}, "ck_devices_kind"),
        ("devices", {"units_free": -1}, "ck_devices_units_range"),
        ("devices", {"units_free": 101}, "ck_devices_units_range"),
        ("node_amounts", {"free": -1}, "ck_node_amounts_free_not_negative"),
        ("jobs", {"state": "lost"}, "ck_jobs_state"),
        ("jobs", {"state": "stopping"}, "ck_jobs_stopping_outcome"),
        ("jobs", {"stop_outcome": "failed"}, "ck_jobs_stopping_outcome"),
        ("jobs", {"state": "failed"}, "ck_jobs_ended_when_terminal"),
        ("jobs", {"state": "succeeded"}, "ck_jobs_ended_when_terminal"),
        ("jobs", {"state": "cancelled"}, "ck_jobs_ended_when_terminal"),
        ("jobs", ENDED, "ck_jobs_ended_when_terminal"),
        ("quotas", {"owner_kind": "user"}, "ck_quotas_owner_kind"),
        ("quotas", {"nominal": -1}, "ck_quotas_nominal_not_negative"),
        ("quotas", {"borrowing_limit": -1}, "ck_quotas_borrowing_not_negative"),
        ("quotas", {"lending_limit": -1}, "ck_quotas_lending_range"),
        ("quotas", {"lending_limit": 10}, "ck_quotas_lending_range"),
        ("attempts", {"phase": "flying"}, "ck_attempts_phase"),
        ("attempts", {"phase": "closed"}, "ck_attempts_closed_at"),
        ("attempts", {"closed_us": 5}, "ck_attempts_closed_at"),
        ("device_grants", {"units": 0}, "ck_device_grants_units_positive"),
    ],
)
def test_a_value_that_makes_no_sense_is_refused_by_the_rule_of_its_name(
    connection: Connection, table: str, values: dict[str, Any], rule: str
) -> None:
    assert refusal(connection, table, **values) == f"CHECK constraint failed: {rule}"


@pytest.mark.parametrize(
    ("table", "values"),
    [
        ("cohorts", {"weight": 0}),
        ("queues", {"priority_min": 1}),
        ("queues", {"state": "paused"}),
        ("devices", {"units_free": 0}),
        ("devices", {"units_free": 100}),
        ("node_amounts", {"free": 0}),
        ("jobs", {"state": "stopping", "stop_outcome": "failed"}),
        ("jobs", {"state": "failed", **ENDED}),
        ("jobs", {"state": "held"}),
        ("quotas", {"borrowing_limit": 0, "lending_limit": 9}),
        ("quotas", {"borrowing_limit": None, "lending_limit": None}),
        ("attempts", {"phase": "closed", "closed_us": 5}),
        ("attempts", {"phase": "held_in_cluster"}),
        ("device_grants", {"units": 1}),
    ],
)
def test_the_values_at_the_edge_of_a_rule_are_taken(
    connection: Connection, table: str, values: dict[str, Any]
) -> None:
    change(connection, table, **values)


@pytest.mark.parametrize(
    ("table", "values", "rule"),
    [
        ("cohorts", {}, "cohorts.name"),
        ("queues", {}, "queues.name"),
        ("nodes", {"id": 2}, "nodes.name"),
        ("devices", {"id": 2}, "devices.node_id, devices.kind, devices.ordinal"),
        ("request_classes", {"id": 2}, "request_classes.digest"),
        ("jobs", {"id": 2, "name": "other"}, "jobs.uid"),
        ("jobs", {"id": 2, "uid": "v"}, "jobs.namespace, jobs.name"),
        ("quotas", {}, "quotas.owner_kind, quotas.owner, quotas.flavor, quotas.resource"),
        (
            "attempts",
            {"id": 2, "phase": "closed", "closed_us": 1},
            "attempts.job_id, attempts.number",
        ),
        ("attempts", {"id": 2, "number": 2}, "attempts.job_id"),
        (
            "assignments",
            {"id": 2},
            "assignments.attempt_id, assignments.pod_set, assignments.pod_index",
        ),
        ("charges", {"id": 2}, "charges.attempt_id, charges.flavor, charges.resource"),
        ("log_tails", {}, "log_tails.attempt_id, log_tails.rank"),
        ("device_grants", {"id": 2}, "device_grants.device_id"),
    ],
)
def test_what_may_be_there_once_is_refused_a_second_time(
    connection: Connection, table: str, values: dict[str, Any], rule: str
) -> None:
    with pytest.raises(IntegrityError) as caught:
        insert(connection, table, **{**ROWS[table], **values})
    assert str(caught.value.orig) == f"UNIQUE constraint failed: {rule}"


@pytest.mark.parametrize(
    ("table", "first", "second"),
    [
        ("jobs", {"state": "failed", **ENDED}, {"id": 2, "uid": "v"}),
        ("jobs", {}, {"id": 2, "uid": "v", "namespace": "b"}),
        ("attempts", {"phase": "closed", "closed_us": 1}, {"id": 2, "number": 2}),
        ("device_grants", {"is_live": False}, {"id": 2}),
        ("device_grants", {"is_whole": False}, {"id": 2, "is_whole": False, "units": 50}),
    ],
)
def test_a_name_a_job_or_a_device_is_free_again_once_its_holder_has_ended(
    connection: Connection, table: str, first: dict[str, Any], second: dict[str, Any]
) -> None:
    if first:
        change(connection, table, **first)
    insert(connection, table, **{**ROWS[table], **second})


@pytest.mark.parametrize(
    ("key", "others_key", "user", "is_taken"),
    [
        ("k", "k", "ada", True),
        ("k", "k", "bob", False),
        ("k", "l", "ada", False),
        (None, None, "ada", False),
    ],
)
def test_a_key_is_used_once_by_a_user_and_no_key_is_no_key(
    connection: Connection, key: str | None, others_key: str | None, user: str, *, is_taken: bool
) -> None:
    change(connection, "jobs", user_name="ada", idempotency_key=key)
    second = {
        **ROWS["jobs"],
        "id": 2,
        "uid": "v",
        "name": "other",
        "user_name": user,
        "idempotency_key": others_key,
    }
    if not is_taken:
        insert(connection, "jobs", **second)
        return
    with pytest.raises(IntegrityError, match=r"jobs\.idempotency_key"):
        insert(connection, "jobs", **second)


@pytest.mark.parametrize(
    ("table", "values"),
    [
        ("cohorts", {"name": "below", "parent": "none"}),
        ("queues", {"name": "p", "cohort": "none"}),
        ("devices", {"id": 2, "node_id": 9}),
        ("jobs", {"id": 2, "uid": "v", "name": "other", "class_id": 9}),
        ("quotas", {"resource": "s", "flavor": "none"}),
        ("attempts", {"id": 2, "number": 2, "job_id": 9}),
        ("namespace_defaults", {"namespace": "b", "queue": "none"}),
        ("assignments", {"id": 2, "pod_index": 1, "node_id": 9}),
        ("charges", {"id": 2, "attempt_id": 9}),
        ("log_tails", {"attempt_id": 9}),
        ("device_grants", {"id": 2, "is_whole": False, "assignment_id": 9}),
    ],
)
def test_nothing_refers_to_what_does_not_exist(
    connection: Connection, table: str, values: dict[str, Any]
) -> None:
    with pytest.raises(IntegrityError, match="FOREIGN KEY constraint failed"):
        insert(connection, table, **{**ROWS[table], **values})


@pytest.mark.parametrize("table", ["nodes", "jobs", "attempts", "queues", "flavors", "devices"])
def test_nothing_that_is_referred_to_can_be_deleted(connection: Connection, table: str) -> None:
    with pytest.raises(IntegrityError, match="FOREIGN KEY constraint failed"):
        connection.execute(rows_of(table).delete())


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE events SET kind = 'other'",
        "UPDATE events SET at_us = at_us",
        "DELETE FROM events",
        "DELETE FROM events WHERE id = 1",
    ],
)
def test_history_cannot_be_changed(connection: Connection, statement: str) -> None:
    with pytest.raises(IntegrityError, match="events are append-only"):
        connection.execute(text(statement))


def test_history_can_be_added_to(connection: Connection) -> None:
    insert(connection, "events", kind="started", job_id=1)

    [count] = connection.execute(text("SELECT count(*) FROM events")).scalars()
    assert count == 2


def test_every_table_of_the_release_has_a_sound_row(connection: Connection) -> None:
    assert set(inspect(connection).get_table_names()) - {"alembic_version"} == set(ROWS)
