"""Finds the waiting jobs whose queue timeout has passed, among a million that wait in time.

Jobs of one timeout become overdue in the order of their submits, so the first of each timeout says
whether there is anybody. Reads only.
"""

from collections.abc import Sequence

from sqlalchemy import Connection, RowMapping, select, text

from gateway.db.tables import TIMED_WAITING, jobs

SECOND_US = 1_000_000
_NAMED = "jobs INDEXED BY ix_jobs_timed_waiting"
"""SQLite, which keeps no statistics, would go through everybody by state instead."""


def _lengths(waiting: str) -> str:
    """Give the statement for timeouts that have passed for somebody; one step for each timeout."""
    least = (
        f"SELECT queue_timeout_seconds FROM {waiting} WHERE {TIMED_WAITING}"  # noqa: S608 - constants only
        " AND queue_timeout_seconds > {above} ORDER BY queue_timeout_seconds LIMIT 1"
    )
    first_submit = (
        f"SELECT submitted_us FROM {waiting} WHERE {TIMED_WAITING}"  # noqa: S608 - constants only
        " AND queue_timeout_seconds = lengths.seconds ORDER BY submitted_us LIMIT 1"
    )
    return (
        f"WITH RECURSIVE lengths(seconds) AS (SELECT ({least.format(above='0')})"  # noqa: S608 - constants only
        f" UNION ALL SELECT ({least.format(above='lengths.seconds')}) FROM lengths"
        " WHERE lengths.seconds IS NOT NULL)"
        f" SELECT seconds FROM lengths WHERE ({first_submit}) <= :at_us - seconds * {SECOND_US}"
    )


_LENGTHS = {True: text(_lengths(_NAMED)), False: text(_lengths("jobs"))}
"""By whether it is SQLite."""


def overdue_waiting(connection: Connection, at_us: int, limit: int) -> Sequence[RowMapping]:
    """Give waiting jobs whose queue timeout has passed, at most so many."""
    is_sqlite = connection.dialect.name == "sqlite"
    found: list[RowMapping] = []
    for seconds in connection.execute(_LENGTHS[is_sqlite], {"at_us": at_us}).scalars().all():
        # From the submit on, not from eligibility: it is what the user meant to wait at most.
        statement = (
            select(jobs)
            .where(
                jobs.c.queue_timeout_seconds == seconds,
                jobs.c.submitted_us <= at_us - seconds * SECOND_US,
                text(TIMED_WAITING),
            )
            .order_by(jobs.c.submitted_us)
            .limit(limit - len(found))
        )
        found += connection.execute(statement).mappings()
        if len(found) == limit:
            break
    return found
