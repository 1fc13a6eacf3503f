"""Reads what people want to see of jobs whose order was found elsewhere."""

from collections.abc import Collection

from sqlalchemy import Connection, RowMapping, select

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
