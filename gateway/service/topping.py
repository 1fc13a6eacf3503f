"""Puts a waiting job before all others of its queue, by the smallest change of priority that does.

Where it stands is read from the warm state, and written only if nobody came, left or changed in the
queue meanwhile.
"""

from contextlib import suppress
from typing import NamedTuple

from gateway.core.admission.ranking import BY_NUMBER, Ranking
from gateway.db import jobs as job_rows
from gateway.db.engine import Connection, Row, Writer
from gateway.db.events import NewEvent, append_event
from gateway.db.ranked import QueueStamp, stamp_of
from gateway.errors import Conflict, InvalidInput, StaleVersion
from gateway.schemas.views import JobView
from gateway.service.context import Caller, Gateway
from gateway.service.jobs import find_visible
from gateway.service.ordering import ranking
from gateway.service.presenting import job_view
from gateway.service.verbs import change_visible, require_verb

MAX_TRIES = 5


class _Move(NamedTuple):
    """What is to be written, and what it was decided on."""

    priority: int
    version: int
    stamp: QueueStamp


def top(gateway: Gateway, caller: Caller, job_id: str, list_serial: int | None = None) -> JobView:
    """Let a pending job come first in its queue; one that does already stays as it is.

    Raises:
        Denied: the caller is no admin.
        StaleVersion: the queue's list is not the one of this number any more.
        InvalidTransition: the job does not wait.
        Conflict: its priority does not decide about its place.
        InvalidInput: the priority that it would take is outside of the queue's range.
    """
    caller.require_admin()
    for _ in range(1, MAX_TRIES):
        with suppress(_Changed):
            return _top(gateway, caller, job_id, list_serial)
    return _top(gateway, caller, job_id, list_serial)


class _Changed(StaleVersion):
    """Somebody was faster; decided anew, it may still work."""


def _top(gateway: Gateway, caller: Caller, job_id: str, list_serial: int | None) -> JobView:
    with gateway.database.read() as connection:
        job = find_visible(connection, caller, job_id)
        require_verb(job, "top")
        queue = job_rows.get_queue_row(connection, job["queue"])
        # Read before the list is: what changes in between is then seen as a change.
        stamp = stamp_of(connection, job["queue"])
    with ranking(gateway, job["queue"], gateway.clock.now_us()) as order:
        _require_serial(order, job, list_serial)
        priority = _priority(order, job)
    if priority == job["priority"]:
        return job_view(job, gateway.backend.guarantee)
    _require_range(job, queue, priority)
    move = _Move(priority, job["version"], stamp)

    def act(writer: Writer, now: Row) -> None:
        _write(gateway, writer, caller, now, move)

    return change_visible(gateway, caller, job_id, act, None)


def _write(gateway: Gateway, writer: Writer, caller: Caller, job: Row, move: _Move) -> None:
    _require_unchanged(writer.connection, job, move)
    job_rows.change_job(writer, job, {"priority": move.priority})
    append_event(
        writer,
        NewEvent(
            at_us=gateway.clock.now_us(),
            kind="topped",
            actor=caller.name,
            job_id=job["id"],
            detail=f"{job['priority']} -> {move.priority}, first of queue {job['queue']}",
        ),
    )


def _require_unchanged(connection: Connection, job: Row, move: _Move) -> None:
    if (job["version"], stamp_of(connection, job["queue"])) != (move.version, move.stamp):
        raise _Changed(f"queue {job['queue']} changed meanwhile", hint="repeat the request")


def _require_serial(order: Ranking, job: Row, list_serial: int | None) -> None:
    if list_serial in {None, order.serial}:
        return
    raise StaleVersion(
        f"the list of queue {job['queue']} has changed: its number is {order.serial} by now",
        pointer="/headers/if-match",
        value=list_serial,
        hint=f"look at it again: gateway queue order {job['queue']}",
    )


def _priority(order: Ranking, job: Row) -> int:
    """Give the priority with which the job comes first."""
    if order.place_of(job["id"]) is None:
        raise _Changed(f"job {job['name']} does not wait any more", hint="read it again")
    number = order.priority_to_lead(job["id"])
    if number is not None:
        return number
    queue = job["queue"]
    if order.policy not in BY_NUMBER:
        raise Conflict(
            f"queue {queue} is ordered by {order.policy}, not by priority",
            hint=f"change its order: gateway queue set {queue} --order priority",
        )
    if order.of(job["id"]).eligible_us > order.now_us:
        raise Conflict(f"job {job['name']}: its time has not come", hint="wait for it")
    raise Conflict(
        f"{job['user_name']} has used more of queue {queue} lately than the first job's user",
        hint=f"change its order: gateway queue set {queue} --order priority",
    )


def _require_range(job: Row, queue: Row | None, priority: int) -> None:
    if queue is None or queue["priority_min"] <= priority <= queue["priority_max"]:
        return
    raise InvalidInput(
        f"to come first job {job['name']} needs priority {priority}, which queue {job['queue']} "
        "does not take",
        pointer="/priority",
        value=priority,
        allowed=(f"{queue['priority_min']} to {queue['priority_max']}",),
        hint="raise the queue's priority_max, or lower the priority of those before it",
    )
