"""The append-only history: what happened, to which job, by whom; in the same transaction."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, RowMapping, insert, select

from gateway.db.engine import Writer
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
    if new:
        writer.connection.execute(
            insert(events),
            [
                {
                    "at_us": event.at_us,
                    "kind": event.kind,
                    "actor": event.actor,
                    "job_id": event.job_id,
                    "detail": event.detail[:2000],
                    "data": dict(event.data),
                }
                for event in new
            ],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class EventFilter:
    """Which events to read.

    With `namespaces` given, only events of jobs in them; None gives every event.
    """

    after_id: int = 0
    limit: int = 100
    job_id: int | None = None
    namespaces: tuple[str, ...] | None = None


def list_events(connection: Connection, wanted: EventFilter) -> Sequence[RowMapping]:
    """Give events by id, with the job's public id and namespace."""
    statement = (
        select(events, jobs.c.uid, jobs.c.namespace)
        .select_from(events.outerjoin(jobs, jobs.c.id == events.c.job_id))
        .where(events.c.id > wanted.after_id)
        .order_by(events.c.id)
        .limit(wanted.limit)
    )
    if wanted.job_id is not None:
        statement = statement.where(events.c.job_id == wanted.job_id)
    if wanted.namespaces is not None:
        statement = statement.where(jobs.c.namespace.in_(wanted.namespaces))
    return connection.execute(statement).mappings().all()
