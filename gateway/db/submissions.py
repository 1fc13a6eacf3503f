"""Stores new jobs, many at a time: one statement for a kind of row, however many there are.

What a submit needs to know of definitions is remembered here until their generation changes.
Taken names and keys are left out by the database, and told by what is missing afterwards.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from sqlalchemy import Connection, Integer, select

from gateway.core.jobs.request import RequestClass
from gateway.db.engine import Database, Row, Writer
from gateway.db.jobs import intern_class
from gateway.db.tables import jobs, namespace_defaults, priority_classes, queues

MOST_CLASSES = 10_000
MOST_ROWS = 128
"""Rows of one statement."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueBook:
    """What a job meets of the definitions, at one generation of them."""

    generation: int = -1
    queues: Mapping[str, Row] = field(default_factory=dict)
    """By name."""
    defaults: Mapping[str, str] = field(default_factory=dict)
    """Namespaces' default queues."""
    classes: Mapping[str, int] = field(default_factory=dict)
    """Values of priority classes."""


@dataclass(slots=True)
class Remembered:
    """What need not be read again for each submit. A stale value is never used, only replaced."""

    book: QueueBook = field(default_factory=QueueBook)
    class_ids: dict[RequestClass, int] = field(default_factory=dict)
    """Committed request classes; they never change and are never deleted."""

    def learn_class(self, database: Database, request: RequestClass) -> int:
        """Give the id of a request class, stored in a transaction of its own when it is new."""
        found = self.class_ids.get(request)
        if found is None:
            found = database.run_write(lambda writer: intern_class(writer, request))
            if len(self.class_ids) >= MOST_CLASSES:
                self.class_ids.clear()
            self.class_ids[request] = found
        return found

    def queues(self, connection: Connection, generation: int) -> QueueBook:
        """Give the queues at this generation, which the transaction read."""
        if self.book.generation != generation:
            self.book = _read_book(connection, generation)
        return self.book


def _read_book(connection: Connection, generation: int) -> QueueBook:
    defaults = connection.execute(select(namespace_defaults))
    return QueueBook(
        generation=generation,
        queues={row["name"]: row for row in connection.execute(select(queues)).mappings()},
        defaults={row.namespace: row.queue for row in defaults},
        classes=class_values(connection),
    )


def class_values(connection: Connection, locked: Collection[str] = ()) -> dict[str, int]:
    """Give the values of priority classes; of the locked ones alone if any are named.

    Those stay what they are until the transaction ends: a class that is changed at the same time
    changes the jobs that have it, and must find every one.
    """
    statement = select(priority_classes.c.name, priority_classes.c.value)
    if locked:
        statement = statement.where(priority_classes.c.name.in_(locked))
        # In one order, or two transactions could wait for each other. SQLite has one writer.
        statement = statement.order_by(priority_classes.c.name).with_for_update(read=True)
    return {row.name: row.value for row in connection.execute(statement)}


class NewJob(NamedTuple):
    """A job's columns as they are inserted; `spec` is JSON."""

    uid: str
    name: str
    namespace: str
    queue: str
    user_name: str
    idempotency_key: str | None
    spec: str
    spec_digest: str
    class_id: int
    priority: int
    pods: int
    gpus: int
    rdma: int
    state: str
    reason: str | None
    queue_timeout_seconds: int | None
    run_timeout_seconds: int | None
    start_timeout_seconds: int
    submitted_us: int
    priority_class: str = ""
    rank: int = 0
    eligible_us: int = 0
    deadline_us: int = 0
    expected_seconds: int = 0


def insert_jobs(writer: Writer, rows: Sequence[NewJob]) -> set[str]:
    """Insert jobs with their first events; gives uids of those that were inserted.

    Left out are a job whose live name or key is taken, and a job whose queue is gone. A queue
    cannot be deleted while a job is being put into it.
    """
    if not rows:
        return set()
    if writer.is_sqlite:
        return _insert_sqlite(writer, rows)
    parameters = (_as_json(rows), writer.xact_id)
    return set(writer.connection.exec_driver_sql(_INSERT_POSTGRESQL, parameters).scalars())


_COLUMNS = NewJob._fields


def _typed(name: str) -> str:
    is_number = isinstance(jobs.c[name].type, Integer)
    return f"{name} {'jsonb' if name == 'spec' else 'bigint' if is_number else 'text'}"


_INSERT_POSTGRESQL = f"""
WITH given AS (
  SELECT * FROM json_to_recordset(%s::json)
  AS r({", ".join(map(_typed, _COLUMNS))})
), kept AS (
  SELECT name FROM queues WHERE name IN (SELECT queue FROM given) FOR KEY SHARE
), inserted AS (
  INSERT INTO jobs ({", ".join(_COLUMNS)}, xact_id)
  SELECT {", ".join(f"given.{name}" for name in _COLUMNS)}, %s
  FROM given JOIN kept ON kept.name = given.queue
  ON CONFLICT DO NOTHING RETURNING id, uid, submitted_us, user_name, xact_id
), told AS (
  INSERT INTO events (at_us, job_id, kind, actor, data, xact_id)
  SELECT submitted_us, id, 'submitted', user_name, '{{}}', xact_id FROM inserted ORDER BY id
)
SELECT uid FROM inserted
"""  # noqa: S608 - names of columns only
"""One exchange with the server for a whole group, with one parameter for all rows."""


def _as_json(rows: Sequence[NewJob]) -> str:
    # json.dumps of all would write the spec, which is most of the row, as a text within a text.
    parts = []
    for row in rows:
        fields = row._asdict()
        spec = fields.pop("spec")  # is JSON already
        parts.append(f'{json.dumps(fields)[:-1]}, "spec": {spec}}}')
    return f"[{','.join(parts)}]"


_LAST_ID = "SELECT coalesce(max(id), 0) FROM jobs"
_TELL_SUBMITTED = """
INSERT INTO events (at_us, job_id, kind, actor, data, xact_id)
SELECT submitted_us, id, 'submitted', user_name, '{}', xact_id FROM jobs WHERE id > ? ORDER BY id
"""
_INSERTED = "SELECT uid FROM jobs WHERE id > ?"


def _insert_sqlite(writer: Writer, rows: Sequence[NewJob]) -> set[str]:
    """Insert under the one writer's lock, so that no queue can go meanwhile.

    Nobody else inserts meanwhile either, so what is above the last id is what was inserted here.
    """
    run = writer.connection.exec_driver_sql
    # SQLite gives a new row the highest id plus one, also after a savepoint was rolled back.
    last_id = (run(_LAST_ID).scalar_one(),)
    for start in range(0, len(rows), MOST_ROWS):
        part = rows[start : start + MOST_ROWS]
        values = [value for row in part for value in (*row, writer.xact_id)]
        run(_insert_text(len(part)), tuple(values))
    # Told from the jobs themselves, so that no event is written for what was left out.
    if run(_TELL_SUBMITTED, last_id).rowcount == len(rows):
        return {row.uid for row in rows}
    return set(run(_INSERTED, last_id).scalars())


@lru_cache(maxsize=MOST_ROWS)
def _insert_text(count: int) -> str:
    """Give one INSERT of this many rows: a statement a row would give way to other threads."""
    names = (*_COLUMNS, jobs.c.xact_id.name)
    row = f"({', '.join('?' * len(names))})"
    return (
        f"INSERT INTO jobs ({', '.join(names)}) VALUES {', '.join([row] * count)} "  # noqa: S608 - names of columns and marks only
        "ON CONFLICT DO NOTHING"
    )
