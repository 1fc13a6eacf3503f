"""Chooses the queue of a job and clamps its priority, from definitions read before."""

import difflib

from gateway.db.submissions import QueueBook
from gateway.errors import Denied, InvalidInput
from gateway.schemas.job_spec import JobSpec


def queue_of(book: QueueBook, spec: JobSpec) -> str:
    """Give the queue that a job names, or its namespace's default."""
    return spec.queue or book.defaults.get(spec.namespace, "default")


def resolve(book: QueueBook, spec: JobSpec) -> JobSpec:
    """Fill in the queue and clamp the priority to its range.

    Raises:
        InvalidInput: no such queue.
        Denied: the queue does not take jobs of this namespace.
    """
    name = queue_of(book, spec)
    row = book.queues.get(name)
    if row is None:
        raise unknown_queue(name, tuple(sorted(book.queues)))
    allowed = tuple(row["namespaces"])
    if "*" not in allowed and spec.namespace not in allowed:
        raise Denied(
            f"queue {name} does not take jobs from namespace {spec.namespace}",
            pointer="/queue",
            value=name,
            allowed=allowed,
            hint="choose another queue or ask an admin to allow the namespace",
        )
    # Clamped rather than refused, so that a manifest may move between queues unchanged.
    priority = min(max(spec.priority, row["priority_min"]), row["priority_max"])
    return spec.model_copy(update={"queue": name, "priority": priority})


def unknown_queue(name: str, known: tuple[str, ...]) -> InvalidInput:
    """Give the refusal of a queue that does not exist."""
    close = difflib.get_close_matches(name, known, n=1)
    return InvalidInput(
        f"queue {name!r} does not exist",
        pointer="/queue",
        value=name,
        allowed=known,
        hint=f"did you mean {close[0]!r}?" if close else "create it, or choose a known queue",
    )
