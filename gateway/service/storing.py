"""Stores checked submissions: all of a commit group at once, each with its own outcome.

One pass decides from what is remembered, one statement inserts, and only what the database left out
is looked at again. Nothing here judges a manifest or the fleet.
"""

import difflib
import secrets
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gateway.core.jobs.request import RequestClass
from gateway.core.vocabulary import JobState, Reason
from gateway.db import jobs as job_rows
from gateway.db.engine import Connection, Row, Writer
from gateway.db.submissions import NewJob, QueueBook, insert_jobs
from gateway.errors import Denied, GatewayError, InvalidInput, KeyReused, NameTaken
from gateway.schemas.job_spec import JobSpec
from gateway.schemas.views import JobView
from gateway.service.context import Caller, Gateway
from gateway.service.feasibility import is_known_to_fit
from gateway.service.gangs import totals_of
from gateway.service.presenting import job_view


@dataclass(frozen=True, slots=True, kw_only=True)
class Submitted:
    """What came of a submission; `is_new` is False for a repeated key."""

    job: JobView
    is_new: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """A submission that passed every check that needs no transaction."""

    gateway: Gateway
    caller: Caller
    spec: JobSpec
    key: str | None
    request: RequestClass
    digest: str
    at_us: int


class Unjudged(Exception):
    """Whether a job could ever fit into this queue is not known yet; the transaction cannot say."""

    def __init__(self, queue: str, request: RequestClass) -> None:
        """Say what is to be judged."""
        super().__init__(queue)
        self.queue = queue
        self.request = request


def store(writer: Writer, batch: Sequence[Checked]) -> list[Submitted | Exception]:
    """Insert these jobs with their first events; gives for each what came of it.

    Errors: InvalidInput and Denied for the queue, NameTaken, KeyReused, Unjudged.
    """
    outcomes: dict[int, Submitted | Exception] = {}
    rows: dict[int, NewJob] = {}
    book = batch[0].gateway.remembered.queues(writer.connection, writer.generation)
    for index, checked in enumerate(batch):
        try:
            rows[index] = _row(checked, resolve(book, checked.spec))
        except (GatewayError, Unjudged) as error:
            outcomes[index] = _earlier(writer.connection, checked, error)
    inserted = insert_jobs(writer, list(rows.values()))
    for index, row in rows.items():
        if row.uid in inserted:
            outcomes[index] = Submitted(
                job=job_view(_inserted(row, batch[index].spec)), is_new=True
            )
        else:
            why = _why_left_out(writer.connection, batch[index].spec, row)
            outcomes[index] = _earlier(writer.connection, batch[index], why)
    return [outcomes[index] for index in range(len(batch))]


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
        raise _unknown_queue(name, tuple(sorted(book.queues)))
    allowed = tuple(row["namespaces"])
    if "*" not in allowed and spec.namespace not in allowed:
        raise Denied(
            f"queue {name} does not take jobs from namespace {spec.namespace}",
            pointer="/queue",
            value=name,
            allowed=allowed,
            hint="choose another queue or ask an admin to allow the namespace",
        )
    priority = min(max(spec.priority, row["priority_min"]), row["priority_max"])
    return spec.model_copy(update={"queue": name, "priority": priority})


def name_taken(spec: JobSpec) -> NameTaken:
    """Give the refusal of a name that a live job has."""
    return NameTaken(
        f"a live job named {spec.name!r} exists in namespace {spec.namespace}",
        pointer="/metadata/name",
        value=spec.name,
        hint="wait for it, cancel it, or choose another name",
    )


def _why_left_out(connection: Connection, spec: JobSpec, row: NewJob) -> GatewayError:
    if job_rows.find_live_name(connection, spec.namespace, spec.name) is not None:
        return name_taken(spec)
    return _unknown_queue(row.queue, job_rows.queue_names(connection))


def _unknown_queue(name: str, known: tuple[str, ...]) -> InvalidInput:
    close = difflib.get_close_matches(name, known, n=1)
    return InvalidInput(
        f"queue {name!r} does not exist",
        pointer="/queue",
        value=name,
        allowed=known,
        hint=f"did you mean {close[0]!r}?" if close else "create it, or choose a known queue",
    )


def _earlier(connection: Connection, checked: Checked, error: Exception) -> Submitted | Exception:
    """Give the job of this key if there is one: a repeated submit succeeds whatever changed."""
    found = _of_key(connection, checked)
    if found is None:
        return error
    if found["spec_digest"] == checked.digest:
        return Submitted(job=job_view(found), is_new=False)
    return KeyReused(
        f"idempotency key {checked.key!r} was used for job {found['uid']} with another body",
        pointer="/idempotency_key",
        value=checked.key,
        hint="use a new key for a new job",
    )


def _of_key(connection: Connection, checked: Checked) -> Row | None:
    if checked.key is None:
        return None
    namespace = checked.spec.namespace
    return job_rows.find_by_key(connection, checked.caller.name, namespace, checked.key)


def new_uid(at_us: int) -> str:
    """Give a job's public id, a UUID of version 7 (RFC 9562).

    Ids of one moment stand side by side in the index; random ones would touch a page each.
    """
    random = secrets.randbits(74)
    high = (at_us // 1000) << 16 | 0x7000 | random >> 62
    low = 1 << 63 | random & (1 << 62) - 1
    return str(uuid.UUID(int=high << 64 | low))


def _row(checked: Checked, spec: JobSpec) -> NewJob:
    class_id = checked.gateway.remembered.class_ids.get(checked.request)
    if class_id is None or not is_known_to_fit(checked.gateway, spec.queue, checked.request):
        raise Unjudged(spec.queue, checked.request)
    pods, gpus, rdma = totals_of(spec)
    return NewJob(
        uid=new_uid(checked.at_us),
        name=spec.name,
        namespace=spec.namespace,
        queue=spec.queue,
        user_name=checked.caller.name,
        idempotency_key=checked.key,
        spec=spec.model_dump_json(),
        spec_digest=checked.digest,
        class_id=class_id,
        priority=spec.priority,
        pods=pods,
        gpus=gpus,
        rdma=rdma,
        state=(JobState.HELD if spec.hold else JobState.PENDING).value,
        reason=Reason.HELD.value if spec.hold else None,
        queue_timeout_seconds=spec.queue_timeout_seconds,
        run_timeout_seconds=spec.run_timeout_seconds,
        start_timeout_seconds=spec.start_timeout_seconds,
        submitted_us=checked.at_us,
    )


def _inserted(row: NewJob, spec: JobSpec) -> dict[str, Any]:
    """Give the row as it stands after the insert, without reading it back."""
    empty = ("end_reason", "reserved_us", "started_us", "ended_us", "exit_code")
    told = {"message": "", "attempt": 0, "version": 1}
    return {**dict.fromkeys(empty), **told, **row._asdict(), "spec": {"labels": spec.labels}}
