"""Chooses a job's queue and judges what it asks of it, from definitions read before."""

from gateway.db.engine import Row
from gateway.db.submissions import QueueBook
from gateway.errors import Denied, InvalidInput, OverCap
from gateway.schemas.job_spec import JobSpec
from gateway.schemas.suggesting import did_you_mean
from gateway.service.gangs import totals_of


def queue_of(book: QueueBook, spec: JobSpec) -> str:
    """Give the queue that a job names, or its namespace's default."""
    return spec.queue or book.defaults.get(spec.namespace, "default")


def resolve(book: QueueBook, spec: JobSpec) -> JobSpec:
    """Fill in the queue and clamp the priority to its range.

    Raises:
        InvalidInput: no such queue or priority class.
        Denied: the queue does not take jobs of this namespace or priority class.
        OverCap: it does not take jobs of this size.
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
    if spec.priority_class:
        require_class(book, row, spec.priority_class)
    _check_size(row, spec)
    # Clamped rather than refused, so that a manifest may move between queues unchanged.
    priority = min(max(spec.priority, row["priority_min"]), row["priority_max"])
    return spec.model_copy(update={"queue": name, "priority": priority})


def _check_size(queue: Row, spec: JobSpec) -> None:
    most, (_, gpus, _) = queue["caps"].get("gpus_per_job"), totals_of(spec)
    if most is not None and gpus > most:
        raise OverCap(
            f"the job asks for {gpus} GPUs, and queue {queue['name']} takes {most} in one job",
            pointer="/queue",
            value=queue["name"],
            allowed=(f"at most {most} GPUs",),
            hint="ask for fewer, or choose another queue",
        )


def require_class(book: QueueBook, queue: Row, name: str) -> int:
    """Give the value of a priority class that a job of this queue wants.

    Raises:
        InvalidInput: no such class.
        Denied: the queue does not take it.
    """
    allowed = tuple(queue["priority_classes"])
    if name not in book.classes:
        raise InvalidInput(
            f"priority class {name!r} does not exist",
            pointer="/priority_class",
            value=name,
            allowed=allowed,
            hint=did_you_mean(name, book.classes, "choose one that the queue allows"),
        )
    if name not in allowed:
        others = f"choose {' or '.join(allowed)}" if allowed else "leave it out"
        raise Denied(
            f"queue {queue['name']} does not allow priority class {name}",
            pointer="/priority_class",
            value=name,
            allowed=allowed,
            hint=f"{others}, or ask an admin to allow it",
        )
    return book.classes[name]


def unknown_queue(name: str, known: tuple[str, ...]) -> InvalidInput:
    """Give the refusal of a queue that does not exist."""
    return InvalidInput(
        f"queue {name!r} does not exist",
        pointer="/queue",
        value=name,
        allowed=known,
        hint=did_you_mean(name, known, "create it, or choose a known queue"),
    )
