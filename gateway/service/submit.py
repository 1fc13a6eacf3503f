"""Submitting jobs: checked, stored durably with their first event, exactly once for each key."""

import difflib
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from gateway.core.jobs.request import RequestClass
from gateway.core.vocabulary import JobState, Reason
from gateway.db import jobs as job_rows
from gateway.db.engine import Connection, Row, Writer
from gateway.db.events import NewEvent, append_event
from gateway.errors import Denied, GatewayError, InvalidInput, KeyReused, NameTaken, NeverFits
from gateway.manifests import digest
from gateway.schemas.job_spec import JobSpec
from gateway.schemas.problems import problem_of
from gateway.schemas.views import BatchAnswer, BatchItem, JobView, PlanView
from gateway.service.context import Caller, Gateway
from gateway.service.feasibility import is_known_to_fit, require_possible
from gateway.service.gangs import request_of, totals_of
from gateway.service.presenting import job_view

MAX_KEY_LENGTH = 255


@dataclass(frozen=True, slots=True, kw_only=True)
class Submitted:
    """What came of a submission; `is_new` is False for a repeated key."""

    job: JobView
    is_new: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Checked:
    """A submission that passed every check that needs no transaction."""

    gateway: Gateway
    caller: Caller
    spec: JobSpec
    key: str | None
    request: RequestClass
    digest: str
    at_us: int


class _Unjudged(Exception):
    """Whether a job could ever fit into this queue is not known yet."""

    def __init__(self, queue: str) -> None:
        super().__init__(queue)
        self.queue = queue


def submit(gateway: Gateway, caller: Caller, spec: JobSpec, key: str | None) -> Submitted:
    """Store one job durably; the same key gives the same job again.

    Raises:
        Denied: the namespace is not the caller's.
        InvalidInput: unknown queue, or the queue refuses the namespace.
        NeverFits: no place of the fleet, or no quota, could ever hold the gang.
        NameTaken: a live job of that name exists in the namespace.
        KeyReused: the key was used with another body.
    """
    checked = _check(gateway, caller, spec, key)
    while True:
        try:
            submitted = gateway.database.run_grouped(partial(_store, checked))
        except _Unjudged as question:
            require_possible(gateway, question.queue, checked.request)
            continue
        gateway.wake.set()
        return submitted


def submit_batch(
    gateway: Gateway, caller: Caller, specs: Sequence[tuple[JobSpec, str | None]]
) -> BatchAnswer:
    """Store many jobs in one transaction; each passes or fails alone."""
    items: list[BatchItem | _Checked] = []
    for index, (spec, key) in enumerate(specs):
        try:
            items.append(_check(gateway, caller, spec, key))
        except GatewayError as error:
            items.append(BatchItem(index=index, error=problem_of(error)))
    while True:
        try:
            answer = gateway.database.run_write(partial(_store_all, items))
        except _Unjudged as question:
            _judge_all(items, question.queue)
            continue
        gateway.wake.set()
        return BatchAnswer(items=tuple(answer))


def _judge_all(items: list[BatchItem | _Checked], queue: str) -> None:
    """Judge every job of a batch that may be meant for this queue; refusals take their places."""
    for index, item in enumerate(items):
        if isinstance(item, BatchItem) or item.spec.queue not in {"", queue}:
            continue
        try:
            require_possible(item.gateway, queue, item.request)
        except NeverFits as error:
            items[index] = BatchItem(index=index, error=problem_of(error))


def plan(gateway: Gateway, caller: Caller, spec: JobSpec) -> PlanView:
    """Check a submission as `submit` does, and store nothing."""
    checked = _check(gateway, caller, spec, None)
    with gateway.database.read() as connection:
        resolved = _resolve(connection, checked)
        taken = job_rows.find_live_name(connection, spec.namespace, spec.name)
    require_possible(gateway, resolved.queue, checked.request)
    if taken is not None:
        raise _name_taken(resolved)
    pods, gpus, rdma = totals_of(resolved)
    return PlanView(
        spec=resolved.model_dump(mode="json"),
        queue=resolved.queue,
        pods=pods,
        gpus=gpus,
        rdma=rdma,
    )


def _check(gateway: Gateway, caller: Caller, spec: JobSpec, key: str | None) -> _Checked:
    if not caller.may_use(spec.namespace):
        raise Denied(
            f"{caller.name} may not submit to namespace {spec.namespace}",
            pointer="/metadata/namespace",
            value=spec.namespace,
            allowed=caller.namespaces,
            hint="choose one of your namespaces",
        )
    if key is not None and not 0 < len(key) <= MAX_KEY_LENGTH:
        raise InvalidInput(
            f"an idempotency key has 1 to {MAX_KEY_LENGTH} characters, not {len(key)}",
            pointer="/idempotency_key",
            hint="use a UUID",
        )
    return _Checked(
        gateway=gateway,
        caller=caller,
        spec=spec,
        key=key,
        request=request_of(spec),
        digest=digest(spec),
        at_us=gateway.clock.now_us(),
    )


def _store_all(items: Sequence[BatchItem | _Checked], writer: Writer) -> list[BatchItem]:
    answer = []
    for index, item in enumerate(items):
        if isinstance(item, BatchItem):
            answer.append(item)
            continue
        try:
            with writer.savepoint():
                done = _store(item, writer)
            answer.append(BatchItem(index=index, job=done.job, is_new=done.is_new))
        except GatewayError as error:
            answer.append(BatchItem(index=index, error=problem_of(error)))
    return answer


def _store(checked: _Checked, writer: Writer) -> Submitted:
    connection = writer.connection
    earlier = _earlier(connection, checked)
    if earlier is not None:
        return Submitted(job=job_view(earlier), is_new=False)
    spec = _resolve(connection, checked)
    if not is_known_to_fit(checked.gateway, spec.queue, checked.request):
        raise _Unjudged(spec.queue)
    values = _row_values(writer, checked, spec)
    job_id = job_rows.insert_job(writer, values)
    if job_id is None:
        # Another replica may have been faster: the same key gives its job.
        earlier = _earlier(connection, checked)
        if earlier is not None:
            return Submitted(job=job_view(earlier), is_new=False)
        raise _name_taken(spec)
    append_event(writer, _submitted_event(job_id, checked))
    return Submitted(job=job_view(_inserted(values)), is_new=True)


def _earlier(connection: Connection, checked: _Checked) -> Row | None:
    if checked.key is None:
        return None
    found = job_rows.find_by_key(
        connection, checked.caller.name, checked.spec.namespace, checked.key
    )
    if found is not None and found["spec_digest"] != checked.digest:
        raise KeyReused(
            f"idempotency key {checked.key!r} was used for job {found['uid']} with another body",
            pointer="/idempotency_key",
            value=checked.key,
            hint="use a new key for a new job",
        )
    return found


def _resolve(connection: Connection, checked: _Checked) -> JobSpec:
    """Fill in the queue and clamp the priority to its range."""
    spec = checked.spec
    name = spec.queue or job_rows.default_queue(connection, spec.namespace)
    row = job_rows.get_queue_row(connection, name)
    if row is None:
        known = job_rows.queue_names(connection)
        close = difflib.get_close_matches(name, known, n=1)
        raise InvalidInput(
            f"queue {name!r} does not exist",
            pointer="/queue",
            value=name,
            allowed=known,
            hint=f"did you mean {close[0]!r}?" if close else "create it, or choose a known queue",
        )
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


def _row_values(writer: Writer, checked: _Checked, spec: JobSpec) -> dict[str, Any]:
    pods, gpus, rdma = totals_of(spec)
    return {
        "uid": str(uuid.uuid4()),
        "name": spec.name,
        "namespace": spec.namespace,
        "queue": spec.queue,
        "user_name": checked.caller.name,
        "idempotency_key": checked.key,
        "spec": spec.model_dump(mode="json"),
        "spec_digest": checked.digest,
        "class_id": job_rows.intern_class(writer, checked.request),
        "priority": spec.priority,
        "pods": pods,
        "gpus": gpus,
        "rdma": rdma,
        "state": JobState.HELD if spec.hold else JobState.PENDING,
        "reason": Reason.HELD if spec.hold else None,
        "queue_timeout_seconds": spec.queue_timeout_seconds,
        "run_timeout_seconds": spec.run_timeout_seconds,
        "start_timeout_seconds": spec.start_timeout_seconds,
        "submitted_us": checked.at_us,
    }


def _inserted(values: dict[str, Any]) -> dict[str, Any]:
    """Give the row as it stands after the insert, without reading it back."""
    empty = ("end_reason", "reserved_us", "started_us", "ended_us", "exit_code")
    return {**dict.fromkeys(empty), "message": "", "attempt": 0, "version": 1, **values}


def _submitted_event(job_id: int, checked: _Checked) -> NewEvent:
    return NewEvent(at_us=checked.at_us, kind="submitted", actor=checked.caller.name, job_id=job_id)


def _name_taken(spec: JobSpec) -> NameTaken:
    return NameTaken(
        f"a live job named {spec.name!r} exists in namespace {spec.namespace}",
        pointer="/metadata/name",
        value=spec.name,
        hint="wait for it, cancel it, or choose another name",
    )
