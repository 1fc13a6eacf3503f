"""Reads who held a device, and when: the newest first. Reading only."""

from collections.abc import Sequence

from sqlalchemy import Connection, select

from gateway.db.engine import Row
from gateway.db.tables import assignments, attempts, device_grants, jobs


def holds_of(connection: Connection, device_id: int, before_id: int, limit: int) -> Sequence[Row]:
    """Give grants of a device by id, downwards from below `before_id`; 0 begins at the newest."""
    joined = (
        device_grants.join(assignments, assignments.c.id == device_grants.c.assignment_id)
        .join(attempts, attempts.c.id == assignments.c.attempt_id)
        .join(jobs, jobs.c.id == attempts.c.job_id)
    )
    statement = (
        select(
            device_grants.c.id,
            device_grants.c.units,
            device_grants.c.is_live,
            assignments.c.pod_set,
            assignments.c.pod_index,
            attempts.c.number,
            attempts.c.reserved_us,
            attempts.c.closed_us,
            attempts.c.end_reason,
            jobs.c.uid,
            jobs.c.name,
            jobs.c.namespace,
            jobs.c.queue,
        )
        .select_from(joined)
        .where(device_grants.c.device_id == device_id)
        # By id and not by time: reservations of one pass share their instant.
        .order_by(device_grants.c.id.desc())
        .limit(limit)
    )
    if before_id:
        statement = statement.where(device_grants.c.id < before_id)
    return connection.execute(statement).mappings().all()
