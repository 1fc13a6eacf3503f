"""Counts of waiting jobs that caps are compared with, and the lock that keeps them true.

Counted in the storing transaction: a number that was read before it may be wrong by then.
"""

from collections.abc import Collection

from sqlalchemy import Connection, func, select, tuple_

from gateway.core.vocabulary import JobState
from gateway.db.engine import Writer
from gateway.db.tables import jobs, queues

Place = tuple[str, str]
"""A queue and one of its users; an empty user stands for all."""
QUEUED = (JobState.PENDING.value, JobState.HELD.value)
"""Held jobs count: else whoever submits held ones and releases them has no cap."""


def lock_queues(writer: Writer, names: Collection[str]) -> None:
    """Let nobody else store into these queues until the transaction ends.

    On SQLite nobody can anyway. On PostgreSQL the lock still lets foreign keys be checked; a
    statement after it sees what was committed while it was waited for.
    """
    if writer.is_sqlite:
        return
    # Sorted: two transactions that lock two queues each must not wait for each other.
    statement = select(queues.c.name).where(queues.c.name.in_(names)).order_by(queues.c.name)
    writer.connection.execute(statement.with_for_update(key_share=True))


def count_queued(connection: Connection, places: Collection[Place]) -> dict[Place, int]:
    """Give the number of waiting jobs of each place; places without any are missing."""
    # By the index on queue and state. Nearly as many rows as the cap allows, for it kept more out.
    whole = [queue for queue, user in places if not user]
    of_users = [place for place in places if place[1]]
    found = _of_queues(connection, whole) if whole else {}
    return found | (_of_users(connection, of_users) if of_users else {})


def _of_queues(connection: Connection, queues: Collection[str]) -> dict[Place, int]:
    statement = select(jobs.c.queue, func.count()).group_by(jobs.c.queue)
    is_wanted = jobs.c.state.in_(QUEUED) & jobs.c.queue.in_(queues)
    return {(row[0], ""): row[1] for row in connection.execute(statement.where(is_wanted))}


def _of_users(connection: Connection, places: Collection[Place]) -> dict[Place, int]:
    place = (jobs.c.queue, jobs.c.user_name)
    statement = select(*place, func.count()).group_by(*place)
    is_wanted = jobs.c.state.in_(QUEUED) & tuple_(*place).in_(places)
    return {(row[0], row[1]): row[2] for row in connection.execute(statement.where(is_wanted))}
