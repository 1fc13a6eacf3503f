"""Gives a waiting job another place in the order: its number inside the queue, its class across."""

from dataclasses import dataclass
from typing import Any

from gateway.db import jobs as job_rows
from gateway.db.engine import Row, Writer
from gateway.db.events import NewEvent, append_event
from gateway.db.submissions import class_values
from gateway.errors import InvalidInput
from gateway.schemas.views import JobView
from gateway.service.choosing import require_class
from gateway.service.context import Caller, Gateway
from gateway.service.verbs import change_visible, require_verb


@dataclass(frozen=True, slots=True, kw_only=True)
class NewPlace:
    """What is to change; None stays, an empty class takes the job's class away."""

    priority: int | None = None
    priority_class: str | None = None


def reprioritise(
    gateway: Gateway,
    caller: Caller,
    job_id: str,
    wanted: NewPlace,
    if_version: int | None = None,
) -> JobView:
    """Change a waiting job's priority, clamped to its queue's range, or its priority class.

    Raises:
        InvalidInput: nothing was asked for, or there is no such class.
        Denied: the job's queue does not allow the class.
    """
    if wanted == NewPlace():
        raise InvalidInput(
            "neither a priority nor a priority class was given",
            pointer="/priority",
            allowed=("priority", "priority_class"),
            hint="give at least one of them",
        )

    def act(writer: Writer, job: Row) -> None:
        require_verb(job, "reprioritise")
        values = {**_number(writer, job, wanted), **_class(gateway, writer, job, wanted)}
        job_rows.change_job(writer, job, values)
        append_event(
            writer,
            NewEvent(
                at_us=gateway.clock.now_us(),
                kind="reprioritised",
                actor=caller.name,
                job_id=job["id"],
                detail=_words(job, values),
            ),
        )

    return change_visible(gateway, caller, job_id, act, if_version)


def _number(writer: Writer, job: Row, wanted: NewPlace) -> dict[str, Any]:
    if wanted.priority is None:
        return {}
    queue = job_rows.get_queue_row(writer.connection, job["queue"])
    if queue is None:
        return {"priority": wanted.priority}
    return {"priority": min(max(wanted.priority, queue["priority_min"]), queue["priority_max"])}


def _class(gateway: Gateway, writer: Writer, job: Row, wanted: NewPlace) -> dict[str, Any]:
    name = wanted.priority_class
    if not name:
        return {} if name is None else {"priority_class": "", "rank": 0}
    # Locked before it is judged: a class that is changed or deleted now waits for this job.
    values = class_values(writer.connection, [name])
    book = gateway.remembered.queues(writer.connection, writer.generation)
    require_class(book, book.queues[job["queue"]], name)
    return {"priority_class": name, "rank": values.get(name, 0)}


def _words(job: Row, values: dict[str, Any]) -> str:
    """Say what changed, as `4 -> 7, class low -> high`."""
    parts = []
    if "priority" in values:
        parts.append(f"{job['priority']} -> {values['priority']}")
    if "priority_class" in values:
        old, new = job["priority_class"] or "none", values["priority_class"] or "none"
        parts.append(f"class {old} -> {new}")
    return ", ".join(parts)
