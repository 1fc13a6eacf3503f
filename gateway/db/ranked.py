"""Reads what people want to see of jobs whose order was found elsewhere."""

from collections.abc import Collection
from typing import NamedTuple

from sqlalchemy import Connection, RowMapping, func, select

from gateway.core.vocabulary import JobState
from gateway.db.reasons import reason_now
from gateway.db.tables import jobs

_SHOWN = (
    *(jobs.c.id, jobs.c.uid, jobs.c.name, jobs.c.namespace, jobs.c.user_name, jobs.c.state),
    *(jobs.c.priority_class, jobs.c.pods, jobs.c.gpus, jobs.c.rdma),
)


def jobs_by_row(connection: Connection, ids: Collection[int]) -> dict[int, RowMapping]:
    """Give jobs by row id with the reason why they wait now."""
    statement = select(*_SHOWN, reason_now().label("reason")).where(jobs.c.id.in_(ids))
    return {row["id"]: row for row in connection.execute(statement).mappings()}


class QueueStamp(NamedTuple):
    """Changes whenever somebody who waits in a queue comes, leaves or changes."""

    waiting: int
    versions: int
    newest: int


def stamp_of(connection: Connection, queue: str) -> QueueStamp:
    """Give a queue's stamp."""
    count, versions, newest = connection.execute(
        select(
            func.count(),
            func.coalesce(func.sum(jobs.c.version), 0),
            func.coalesce(func.max(jobs.c.id), 0),
        ).where(jobs.c.queue == queue, jobs.c.state == JobState.PENDING)
    ).one()
    return QueueStamp(int(count), int(versions), int(newest))
