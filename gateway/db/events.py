"""The append-only history: what happened, to which job, by whom; in the same transaction."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, Select, func, literal, select, text, tuple_

from gateway.db.engine import Row, Writer
from gateway.db.many import insert_rows
from gateway.db.tables import events, jobs


@dataclass(frozen=True, slots=True, kw_only=True)
class NewEvent:
    """One event to append; `kind` is a short stable word."""

    at_us: int
    kind: str
    actor: str
    job_id: int | None = None
    detail: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)


def append_event(writer: Writer, event: NewEvent) -> None:
    """Append one event."""
    append_events(writer, [event])


def append_events(writer: Writer, new: Sequence[NewEvent]) -> None:
    """Append events in this order."""
    rows = [
        {
            "at_us": event.at_us,
            "kind": event.kind,
            "actor": event.actor,
            "job_id": event.job_id,
            # Words of pods and clusters have no bound of their own.
            "detail": event.detail[:2000],
            "data": dict(event.data),
            "xact_id": writer.xact_id,
        }
        for event in new
    ]
    insert_rows(writer, events, rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class EventFilter:
    """Which events to read.

    With `namespaces` given, only events of jobs in them; None gives every event.
    """

    after_id: int = 0
    limit: int = 100
    job_id: int | None = None
    namespaces: tuple[str, ...] | None = None


def list_events(connection: Connection, wanted: EventFilter) -> Sequence[Row]:
    """Give events with their job's public id and namespace.

    One job's events come by id. All events come in an order in which nothing can turn up later
    before something that was told: by transaction, and on PostgreSQL only those that are older
    than every open transaction. `after_id` is then a place to resume from that misses none.
    """
    statement = (
        select(events, jobs.c.uid, jobs.c.namespace)
        .select_from(events.outerjoin(jobs, jobs.c.id == events.c.job_id))
        .limit(wanted.limit)
    )
    if wanted.namespaces is not None:
        statement = statement.where(jobs.c.namespace.in_(wanted.namespaces))
    if wanted.job_id is None:
        statement = _in_told_order(statement, connection, wanted.after_id)
    else:
        is_next = (events.c.job_id == wanted.job_id, events.c.id > wanted.after_id)
        statement = statement.where(*is_next).order_by(events.c.id)
    return connection.execute(statement).mappings().all()


def _in_told_order(statement: Select[Any], connection: Connection, after_id: int) -> Select[Any]:
    place = (events.c.xact_id, events.c.id)
    if connection.dialect.name == "postgresql":
        oldest_open = text("CAST(CAST(pg_snapshot_xmin(pg_current_snapshot()) AS text) AS bigint)")
        # A transaction that is still open may yet bring an event with a smaller number.
        statement = statement.where(events.c.xact_id < oldest_open)
    if after_id:
        # The event itself may be gone from view (another tenant's); its place in the order is not.
        told = select(events.c.xact_id).where(events.c.id <= after_id)
        last = told.order_by(events.c.id.desc()).limit(1).scalar_subquery()
        after = tuple_(func.coalesce(last, 0), literal(after_id))
        statement = statement.where(tuple_(*place) > after)
    return statement.order_by(*place)
