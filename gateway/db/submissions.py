"""Stores new jobs, many at a time: one statement for a kind of row, however many there are.

What a submit needs to know of definitions is remembered here until their generation changes.
Taken names and keys are left out by the database, and told by what is missing afterwards.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from sqlalchemy import Connection, bindparam, insert, literal_column, select

from gateway.core.jobs.request import RequestClass
from gateway.db.engine import Database, Row, Writer
from gateway.db.jobs import intern_class
from gateway.db.tables import events, jobs, namespace_defaults, queues

MOST_CLASSES = 10_000
MOST_ROWS = 128
"""Rows of one statement."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueBook:
    """Queues by name and namespaces' default queues, at one generation of the definitions."""

    generation: int = -1
    queues: Mapping[str, Row] = field(default_factory=dict)
    defaults: Mapping[str, str] = field(default_factory=dict)


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
    )


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


def keep_queues(writer: Writer, book: QueueBook, names: set[str]) -> set[str]:
    """Keep these queues from being deleted until the transaction ends; gives those that exist."""
    if writer.is_sqlite:
        return names & set(book.queues)  # one writer: nobody deletes meanwhile
    statement = select(queues.c.name).where(queues.c.name.in_(sorted(names)))
    locked = statement.with_for_update(read=True, key_share=True)
    return set(writer.connection.execute(locked).scalars())


_IS_ONE_OF = jobs.c.uid.in_(bindparam("uids", expanding=True))
_INSERTED = select(jobs.c.uid).where(_IS_ONE_OF)
_TELL_SUBMITTED = insert(events).from_select(
    ("at_us", "job_id", "kind", "actor", "data", "xact_id"),
    select(
        jobs.c.submitted_us,
        jobs.c.id,
        literal_column("'submitted'"),
        jobs.c.user_name,
        literal_column("'{}'"),
        jobs.c.xact_id,
    )
    .where(_IS_ONE_OF)
    .order_by(jobs.c.id),
    include_defaults=False,
)
"""Built once: building a statement costs more than running it."""


def insert_jobs(writer: Writer, rows: Sequence[NewJob]) -> set[str]:
    """Insert jobs with their first events; gives uids of those whose name and key were free."""
    if not rows:
        return set()
    for start in range(0, len(rows), MOST_ROWS):
        part = rows[start : start + MOST_ROWS]
        values = [value for row in part for value in (*row, writer.xact_id)]
        statement = _insert_text(len(part), "?" if writer.is_sqlite else "%s")
        writer.connection.exec_driver_sql(statement, tuple(values))
    uids = [row.uid for row in rows]
    told = writer.connection.execute(_TELL_SUBMITTED, {"uids": uids})
    if told.rowcount == len(rows):
        return set(uids)
    return set(writer.connection.execute(_INSERTED, {"uids": uids}).scalars())


@lru_cache(maxsize=2 * MOST_ROWS)
def _insert_text(count: int, mark: str) -> str:
    """Give one INSERT of this many rows: a statement a row would give way to other threads."""
    names = (*NewJob._fields, jobs.c.xact_id.name)
    row = f"({', '.join([mark] * len(names))})"
    return (
        f"INSERT INTO jobs ({', '.join(names)}) VALUES {', '.join([row] * count)} "  # noqa: S608 - names of columns and marks only
        "ON CONFLICT DO NOTHING"
    )
