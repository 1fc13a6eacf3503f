"""Why jobs wait: stored once for a queue or a request class, read by every job that waits in it.

A cycle never writes a row for each waiting job. What a job's own row says comes first, then what
bars its whole queue or its user, then what its request class met.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    FromClause,
    RowMapping,
    and_,
    case,
    delete,
    func,
    select,
    union,
)
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import GenericFunction
from sqlalchemy.types import BigInteger

from gateway.core.vocabulary import TERMINAL_STATES, JobState, Reason
from gateway.db.engine import Writer
from gateway.db.tables import class_holds, jobs, queue_holds

_LIVE_OTHERS = tuple(sorted(set(JobState) - TERMINAL_STATES - {JobState.PENDING}))
_OF_THE_JOB = frozenset({Reason.NOT_BEFORE, Reason.NOT_REACHED, Reason.QUARANTINED})
"""Reasons of pending jobs that stand in no hold."""


class now_us(GenericFunction[int]):  # noqa: N801 - named like the SQL function that it stands for
    """The database's clock in microseconds since the epoch, so that skewed machines agree."""

    type = BigInteger()
    inherit_cache = True


@compiles(now_us, "sqlite")
def _on_sqlite(*_: object, **__: object) -> str:
    return "CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)"


@compiles(now_us, "postgresql")
def _on_postgresql(*_: object, **__: object) -> str:
    return "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS bigint)"


def reason_now() -> ColumnElement[str | None]:
    """Give the reason of a row of `jobs`; NULL for one that does not wait and has none stored."""
    of_queue, of_user, of_class = (
        select(held.c.reason).where(is_its).scalar_subquery() for held, is_its in _held_by()
    )
    return _first_of(of_queue, of_user, of_class)


def who_may_have(connection: Connection, reason: str) -> list[ColumnElement[bool]]:
    """Give conditions, exactly one of which holds for each job with a reason that holds now.

    They are answered from indexes, and narrow where few may have it: what holds many back is told
    in rows that are few. Jobs that ended have no reason.
    """
    others, pending = jobs.c.state.in_(_LIVE_OTHERS), jobs.c.state == JobState.PENDING
    if reason in _OF_THE_JOB:
        return [others, pending]
    held = union(
        *(
            select(each.c.queue).where(each.c.reason == reason)
            for each in (queue_holds, class_holds)
        )
    )
    queues = connection.execute(held.limit(2)).scalars().all()
    if len(queues) == 1:
        pending = and_(pending, jobs.c.queue == queues[0])
    return [others, pending] if queues else [others]


def with_reasons() -> tuple[FromClause, ColumnElement[str | None]]:
    """Give all jobs and their reasons, to be counted: joined, not looked up for each of a million.

    Worth it for many rows only; of a few, `reason_now` reads just what it needs.
    """
    joined: FromClause = jobs
    found: list[ColumnElement[str | None]] = []
    for held, is_its in _held_by():
        joined = joined.outerjoin(held, is_its)
        found.append(held.c.reason)
    return joined, _first_of(*found)


def _held_by() -> Iterator[tuple[FromClause, ColumnElement[bool]]]:
    """Give what may hold a job, first what counts first, and on which condition it does."""
    everybody, user = queue_holds.alias("everybody"), queue_holds.alias("of_user")
    yield everybody, and_(everybody.c.queue == jobs.c.queue, everybody.c.user_name == "")
    yield user, and_(user.c.queue == jobs.c.queue, user.c.user_name == jobs.c.user_name)
    of_class = class_holds.alias("of_class")
    yield (
        of_class,
        and_(of_class.c.queue == jobs.c.queue, of_class.c.class_id == jobs.c.class_id),
    )


def _first_of(*reasons: Any) -> ColumnElement[str | None]:
    waits = and_(jobs.c.state == JobState.PENDING, ~jobs.c.is_quarantined)
    return case(
        (~waits, jobs.c.reason),
        (jobs.c.eligible_us > now_us(), Reason.NOT_BEFORE.value),
        else_=func.coalesce(*reasons, Reason.NOT_REACHED.value),
    )


def store_class_holds(writer: Writer, rows: Sequence[Mapping[str, Any]]) -> None:
    """Store explanations of (queue, request class)."""
    if not rows:
        return
    statement = writer.inserting(class_holds)
    changing = {
        name: statement.excluded[name] for name in rows[0] if name not in {"queue", "class_id"}
    }
    writer.connection.execute(
        statement.on_conflict_do_update(index_elements=["queue", "class_id"], set_=changing),
        list(rows),
    )


def get_class_hold(connection: Connection, queue: str, class_id: int) -> RowMapping | None:
    """Give the stored explanation of one (queue, request class)."""
    statement = select(class_holds).where(
        class_holds.c.queue == queue, class_holds.c.class_id == class_id
    )
    return connection.execute(statement).mappings().first()


def get_queue_hold(connection: Connection, queue: str, user: str) -> RowMapping | None:
    """Give what bars a user's jobs in a queue: what bars everybody comes first."""
    statement = (
        select(queue_holds)
        .where(queue_holds.c.queue == queue, queue_holds.c.user_name.in_(("", user)))
        .order_by(queue_holds.c.user_name)
        .limit(1)
    )
    return connection.execute(statement).mappings().first()


def all_queue_holds(connection: Connection) -> dict[tuple[str, str], tuple[str, str]]:
    """Give (reason, detail) by (queue, user)."""
    rows = connection.execute(select(queue_holds))
    return {(row.queue, row.user_name): (row.reason, row.detail) for row in rows}


def replace_queue_holds(
    writer: Writer, gone: Iterable[tuple[str, str]], rows: Sequence[Mapping[str, Any]]
) -> None:
    """Store what bars queues or users now, and forget what does not any more."""
    for queue, user in (*gone, *((row["queue"], row["user_name"]) for row in rows)):
        writer.connection.execute(
            delete(queue_holds).where(queue_holds.c.queue == queue, queue_holds.c.user_name == user)
        )
    if rows:
        writer.connection.execute(queue_holds.insert(), list(rows))
