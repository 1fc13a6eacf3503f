"""Reads what was asked for of late, as counts by request class."""

from sqlalchemy import Connection, func, select

from gateway.db.tables import jobs

RECENT_JOBS = 2048
"""Enough to tell what is usual, few enough to be counted at every reading."""


def read_recent(connection: Connection) -> dict[int, int]:
    """Give jobs by request class among those submitted last, whatever became of them."""
    # By row id, which grows with submission: no index of its own, and no look at older rows.
    latest = select(jobs.c.class_id).order_by(jobs.c.id.desc()).limit(RECENT_JOBS).subquery()
    statement = select(latest.c.class_id, func.count()).group_by(latest.c.class_id)
    return {row[0]: row[1] for row in connection.execute(statement)}
