"""Users' decayed usage by queue: noted where gangs are reserved, run and freed, read to decide.

Each figure is as of the instant of its last note and fades from there on without being written.
How it fades is the arithmetic of `core.policies.decay`; which queues count it is the caller's.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from sqlalchemy import Connection, func, select, update

from gateway.core.policies.decay import Usage, added, at_landmark
from gateway.core.vocabulary import AttemptPhase
from gateway.db.engine import Row, Writer
from gateway.db.tables import attempts, jobs, user_usage


class UsageNote(NamedTuple):
    """Usage of a user in a queue that comes or goes, in 1/2^40 of capacity."""

    queue: str
    user: str
    amount: int


def note_usage(writer: Writer, notes: Iterable[UsageNote], at_us: int, half_life_us: int) -> None:
    """Add usages at an instant."""
    total: dict[tuple[str, str], int] = {}
    for note in notes:
        total[note.queue, note.user] = total.get((note.queue, note.user), 0) + note.amount
    # In one order everywhere, or two transactions could wait for each other's rows.
    for (queue, user), amount in sorted(total.items()):
        _add(writer, UsageNote(queue, user, amount), at_us, half_life_us)


def read_usage(
    connection: Connection, horizon: int, half_life_us: int
) -> dict[str, dict[str, int]] | None:
    """Give decayed usage by queue and user, one landmark a queue; None when nothing changed.

    All of it or nothing, because one row that changed moves the landmark of its queue.
    """
    newest = connection.execute(select(func.max(user_usage.c.xact_id))).scalar()
    if newest is None or newest < horizon:
        return None
    by_queue: dict[str, dict[str, Usage]] = {}
    for row in connection.execute(select(user_usage)):
        by_queue.setdefault(row.queue, {})[row.user_name] = Usage(row.usage, row.at_us)
    return {queue: at_landmark(usages, half_life_us) for queue, usages in by_queue.items()}


def counted(connection: Connection) -> Sequence[Row]:
    """Give live gangs whose users' usage counts, with queue and user, by attempt."""
    statement = (
        select(
            attempts.c.id,
            attempts.c.reserved_us,
            attempts.c.usage_part,
            attempts.c.usage_entry,
            attempts.c.usage_at_us,
            jobs.c.queue,
            jobs.c.user_name,
        )
        .join(jobs, jobs.c.id == attempts.c.job_id)
        .where(attempts.c.phase != AttemptPhase.CLOSED, attempts.c.usage_part > 0)
        .order_by(attempts.c.id)
    )
    return connection.execute(statement).mappings().all()


def set_counted(writer: Writer, attempt_id: int, usage: int, at_us: int) -> None:
    """Remember what a live gang has counted in all, as of an instant."""
    writer.connection.execute(
        update(attempts)
        .where(attempts.c.id == attempt_id, attempts.c.phase != AttemptPhase.CLOSED)
        .values(usage_entry=usage, usage_at_us=at_us)
    )


def _add(writer: Writer, note: UsageNote, at_us: int, half_life_us: int) -> None:
    first = {"usage": 0, "at_us": at_us, "xact_id": writer.xact_id}
    key = {"queue": note.queue, "user_name": note.user}
    # The row first, so that it can be locked: two transactions may both find none.
    writer.connection.execute(
        writer.inserting(user_usage).values(**key, **first).on_conflict_do_nothing()
    )
    is_it = (user_usage.c.queue == note.queue) & (user_usage.c.user_name == note.user)
    known = writer.connection.execute(
        select(user_usage.c.usage, user_usage.c.at_us).where(is_it).with_for_update()
    ).one()
    usage = added(Usage(*known), note.amount, at_us, half_life_us)
    writer.connection.execute(
        update(user_usage)
        .where(is_it)
        .values(usage=usage.amount, at_us=usage.at_us, xact_id=writer.xact_id)
    )
