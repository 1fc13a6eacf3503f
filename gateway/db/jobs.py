"""Jobs in the database: inserted once, changed only by compare-and-set on their version."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import itemgetter
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    RowMapping,
    Select,
    and_,
    func,
    select,
    true,
    update,
)

from gateway.core.jobs.request import RequestClass
from gateway.core.vocabulary import TERMINAL_STATES, JobState
from gateway.db.engine import Writer
from gateway.db.reasons import reason_now, who_may_have
from gateway.db.request_shapes import digest, encode
from gateway.db.tables import (
    jobs,
    queues,
    request_classes,
)
from gateway.errors import StaleVersion

TERMINAL = tuple(sorted(state.value for state in TERMINAL_STATES))


def intern_class(writer: Writer, request: RequestClass) -> int:
    """Give the id of a request class, inserting it when it is new."""
    shape = encode(request)
    key = digest(shape)
    found = writer.connection.execute(
        select(request_classes.c.id).where(request_classes.c.digest == key)
    ).scalar_one_or_none()
    if found is not None:
        return int(found)
    # Two submits of one new shape may race; the one that loses reads the winner's row.
    writer.connection.execute(
        writer.inserting(request_classes)
        .values(digest=key, shape=shape, xact_id=writer.xact_id)
        .on_conflict_do_nothing(index_elements=["digest"])
    )
    return int(
        writer.connection.execute(
            select(request_classes.c.id).where(request_classes.c.digest == key)
        ).scalar_one()
    )


def find_by_key(connection: Connection, user: str, namespace: str, key: str) -> RowMapping | None:
    """Give the job that this caller submitted under this idempotency key."""
    return _one(
        connection,
        select(jobs).where(
            jobs.c.user_name == user,
            jobs.c.namespace == namespace,
            jobs.c.idempotency_key == key,
        ),
    )


def find_live_name(connection: Connection, namespace: str, name: str) -> RowMapping | None:
    """Give the live job of this name."""
    return _one(
        connection,
        select(jobs).where(
            jobs.c.namespace == namespace, jobs.c.name == name, jobs.c.state.not_in(TERMINAL)
        ),
    )


def get_job(connection: Connection, uid: str) -> RowMapping | None:
    """Give a job by its public id."""
    return _one(connection, select(*SEEN).where(jobs.c.uid == uid))


SEEN = (*(column for column in jobs.c if column.name != "reason"), reason_now().label("reason"))
"""A job as people see it, with the reason that holds for it now."""
HEAD = tuple(column for column in jobs.c if column.name != "spec")
"""Everything but what the user wrote, which may be long and is seldom needed."""


def get_job_head(connection: Connection, job_id: int) -> RowMapping | None:
    """Give a job by its row id, without its spec."""
    return _one(connection, select(*HEAD).where(jobs.c.id == job_id))


def get_job_heads(connection: Connection, job_ids: Iterable[int]) -> dict[int, RowMapping]:
    """Give jobs by row id, without their specs; those that are not there are left out."""
    statement = select(*HEAD).where(jobs.c.id.in_(list(job_ids)))
    return {row["id"]: row for row in connection.execute(statement).mappings()}


def get_specs(connection: Connection, job_ids: Iterable[int]) -> dict[int, Mapping[str, Any]]:
    """Give what users submitted, in normal form, by job."""
    statement = select(jobs.c.id, jobs.c.spec).where(jobs.c.id.in_(list(job_ids)))
    return {row.id: row.spec for row in connection.execute(statement)}


def get_spec(connection: Connection, job_id: int) -> Mapping[str, Any]:
    """Give what the user submitted, in normal form."""
    spec: Mapping[str, Any] = connection.execute(
        select(jobs.c.spec).where(jobs.c.id == job_id)
    ).scalar_one()
    return spec


def _one(connection: Connection, statement: Select[Any]) -> RowMapping | None:
    return connection.execute(statement).mappings().first()


@dataclass(frozen=True, slots=True, kw_only=True)
class JobQuery:
    """Which jobs to list; empty fields do not filter. Newest first, below `before_id`."""

    states: tuple[str, ...] = ()
    queue: str = ""
    user: str = ""
    name: str = ""
    reason: str = ""
    labels: tuple[tuple[str, str], ...] = ()
    """Every one of these must be there."""
    namespaces: tuple[str, ...] | None = None
    since_us: int = 0
    before_id: int = 0
    limit: int = 100


def list_jobs(connection: Connection, query: JobQuery) -> Sequence[RowMapping]:
    """Give jobs by descending row id."""
    if not query.reason:
        return _page(connection, query, true())
    # Each part has at most a page, so the first page of all is among them.
    parts = [
        _page(connection, query, and_(condition, reason_now() == query.reason))
        for condition in who_may_have(connection, query.reason)
    ]
    newest = sorted(chain.from_iterable(parts), key=itemgetter("id"), reverse=True)
    return newest[: query.limit]


def _page(
    connection: Connection, query: JobQuery, condition: ColumnElement[bool]
) -> Sequence[RowMapping]:
    statement = select(*SEEN).where(condition).order_by(jobs.c.id.desc()).limit(query.limit)
    for column, value in (
        (jobs.c.queue, query.queue),
        (jobs.c.user_name, query.user),
        (jobs.c.name, query.name),
    ):
        if value:
            statement = statement.where(column == value)
    for key, value in query.labels:
        statement = statement.where(jobs.c.spec["labels"][key].as_string() == value)
    if query.states:
        statement = statement.where(jobs.c.state.in_(query.states))
    if query.namespaces is not None:
        statement = statement.where(jobs.c.namespace.in_(query.namespaces))
    if query.since_us:
        statement = statement.where(jobs.c.submitted_us >= query.since_us)
    if query.before_id:
        statement = statement.where(jobs.c.id < query.before_id)
    return connection.execute(statement).mappings().all()


def change_job(writer: Writer, job: RowMapping, values: Mapping[str, Any]) -> None:
    """Change a job if it still has the version that was read.

    Raises:
        StaleVersion: somebody changed it meanwhile.
    """
    changed = writer.connection.execute(
        update(jobs)
        .where(jobs.c.id == job["id"], jobs.c.version == job["version"])
        .values(**values, version=jobs.c.version + 1, xact_id=writer.xact_id)
    )
    if changed.rowcount == 0:
        raise StaleVersion(
            f"job {job['uid']} changed meanwhile", hint="read it again and repeat the request"
        )


def count_by_state(connection: Connection) -> dict[tuple[str, str], int]:
    """Give the number of live jobs by (queue, state)."""
    statement = (
        select(jobs.c.queue, jobs.c.state, func.count())
        .where(jobs.c.state.not_in(TERMINAL))
        .group_by(jobs.c.queue, jobs.c.state)
    )
    return {(row[0], row[1]): row[2] for row in connection.execute(statement)}


def get_queue_row(connection: Connection, name: str) -> RowMapping | None:
    """Give a queue's row."""
    return _one(connection, select(queues).where(queues.c.name == name))


def queue_names(connection: Connection) -> tuple[str, ...]:
    """Give all queue names, sorted."""
    return tuple(connection.execute(select(queues.c.name).order_by(queues.c.name)).scalars())


def set_waiting_message(writer: Writer, job_id: int, reason: str, message: str) -> None:
    """Say why a reserved job is not launched yet; no change of state."""
    writer.connection.execute(
        update(jobs)
        .where(jobs.c.id == job_id, jobs.c.state == JobState.RESERVED)
        .values(reason=reason, message=message[:500])
    )


def set_quarantine(writer: Writer, job_id: int, message: str) -> None:
    """Take a job out of every loop until somebody releases it."""
    writer.connection.execute(
        update(jobs)
        .where(jobs.c.id == job_id)
        .values(
            is_quarantined=True,
            reason="Quarantined",
            message=message[:500],
            version=jobs.c.version + 1,
            xact_id=writer.xact_id,
        )
    )
