"""Judges, inside the storing transaction, what may not change until it commits: caps and classes.

Everything else about queues is remembered between transactions. These two are not: a cap is only
kept if those who store at the same time are counted too, and a class that changes must find every
job that has it. Queues without such a cap and jobs without a class cost nothing here.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from gateway.db.engine import Connection, Writer
from gateway.db.queued import Place, count_queued, lock_queues
from gateway.db.submissions import NewJob, QueueBook, class_values
from gateway.errors import InvalidInput, OverCap


class Room:
    """What caps leave for further jobs."""

    def __init__(self, connection: Connection, book: QueueBook, owners: Collection[Place]) -> None:
        """Count what waits where these (queue, user) want to go; lock the queues before."""
        self._limits: dict[Place, int] = {}
        for owner in owners:
            self._limits.update(_limits(book, owner))
        self._counts = count_queued(connection, self._limits) if self._limits else {}

    @property
    def is_unlimited(self) -> bool:
        """Whether no cap is in the way of any of these jobs."""
        return not self._limits

    def take(self, queue: str, user: str) -> None:
        """Count a job in; raises OverCap, having counted nothing, where there is no room."""
        places = [place for place in _places(queue, user) if place in self._limits]
        for place in places:
            if self._counts.get(place, 0) >= self._limits[place]:
                raise _over_cap(place, self._counts.get(place, 0), self._limits[place])
        # Only once every place has room: a job that one of them refuses takes none.
        for place in places:
            self._counts[place] = self._counts.get(place, 0) + 1

    def give_back(self, queue: str, user: str) -> None:
        """Count a job out that was not stored after all."""
        for place in _places(queue, user):
            if place in self._limits:
                self._counts[place] -= 1


def room_for(writer: Writer, book: QueueBook, rows: Iterable[NewJob]) -> Room:
    """Give the room for these jobs, which nobody else can take until the transaction ends."""
    owners = {(row.queue, row.user_name) for row in rows}
    # Before counting: what is counted without the lock may be one too few by the commit.
    capped = {queue for queue, user in owners if _limits(book, (queue, user))}
    if capped:
        lock_queues(writer, capped)
    return Room(writer.connection, book, owners)


def with_ranks(
    writer: Writer, rows: Mapping[int, NewJob]
) -> tuple[Mapping[int, NewJob], dict[int, Exception]]:
    """Give the jobs with the present values of their classes, and refusals where one is gone."""
    named = {row.priority_class for row in rows.values()} - {""}
    if not named:
        return rows, {}
    values = {"": 0, **class_values(writer.connection, named)}
    gone = {
        index: _gone(row.priority_class)
        for index, row in rows.items()
        if row.priority_class not in values
    }
    ranked = {
        index: row._replace(rank=values[row.priority_class])
        for index, row in rows.items()
        if index not in gone
    }
    return ranked, dict(gone)


def _places(queue: str, user: str) -> tuple[Place, Place]:
    return (queue, ""), (queue, user)


def _limits(book: QueueBook, owner: Place) -> dict[Place, int]:
    caps: Mapping[str, Any] = book.queues[owner[0]]["caps"]
    # In the order of the places: everybody's first.
    names = zip(("queued_jobs", "user_queued_jobs"), _places(*owner), strict=True)
    return {place: caps[name] for name, place in names if name in caps}


def _over_cap(place: Place, waiting: int, limit: int) -> OverCap:
    queue, user = place
    whose = f"{user} has" if user else "there are"
    return OverCap(
        f"{whose} {waiting} waiting jobs in queue {queue}, which takes {limit} "
        f"{'of one user' if user else 'altogether'}",
        pointer="/queue",
        value=queue,
        allowed=(f"at most {limit} waiting",),
        hint="wait until some have started, cancel some, or choose another queue",
    )


def _gone(name: str) -> InvalidInput:
    return InvalidInput(
        f"priority class {name!r} does not exist any more",
        pointer="/priority_class",
        value=name,
        hint="leave it out, or choose another one that the queue allows",
    )
