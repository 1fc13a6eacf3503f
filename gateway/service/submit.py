"""Submitting jobs: checked, stored durably with their first event, exactly once for each key."""

from collections.abc import Sequence
from functools import partial

from gateway.db import jobs as job_rows
from gateway.db.engine import Writer
from gateway.db.group_commit import store_each
from gateway.db.state import read_generation
from gateway.errors import Denied, GatewayError, InvalidInput, NeverFits
from gateway.manifests.remembering import ReadJob, alone
from gateway.schemas.job_spec import JobSpec
from gateway.schemas.views import PlanView
from gateway.service.alike import Checked, Unjudged
from gateway.service.choosing import queue_of, resolve
from gateway.service.context import Caller, Gateway
from gateway.service.feasibility import require_possible
from gateway.service.gangs import request_of, totals_of
from gateway.service.previewing import Place, preview
from gateway.service.rationing import Room
from gateway.service.storing import Submitted, name_taken, store

__all__ = ["Submitted", "plan", "submit", "submit_batch"]
MAX_KEY_LENGTH = 255


def submit(gateway: Gateway, caller: Caller, job: JobSpec | ReadJob, key: str | None) -> Submitted:
    """Store one job durably; the same key gives the same job again.

    Raises:
        Denied: the namespace is not the caller's.
        InvalidInput: unknown queue, or the queue refuses the namespace.
        NeverFits: no place of the fleet, or no quota, could ever hold the gang.
        NameTaken: a live job of that name exists in the namespace.
        OverCap: the queue takes no more jobs, or none of this size.
        KeyReused: the key was used with another body.
    """
    read = job if isinstance(job, ReadJob) else alone(job)
    checked = _check(gateway, caller, read, key)
    # Each turn answers one question for good, so there are as many turns as questions.
    while True:
        try:
            submitted = gateway.database.run_together(store, checked)
        except Unjudged as question:
            _judge(gateway, question)
            continue
        # Only after the commit: who wakes must find the job.
        gateway.wake.set()
        return submitted


def submit_batch(
    gateway: Gateway, caller: Caller, jobs: Sequence[tuple[ReadJob, str | None]]
) -> list[Submitted | GatewayError]:
    """Store many jobs with their keys in one transaction; each passes or fails alone."""
    outcomes: dict[int, Submitted | Exception] = {}
    waiting: dict[int, Checked] = {}
    for index, (job, key) in enumerate(jobs):
        try:
            waiting[index] = _check(gateway, caller, job, key)
        except GatewayError as error:
            outcomes[index] = error
    while waiting:
        try:
            stored = gateway.database.run_write(partial(_store_all, list(waiting.values())))
        except Unjudged as question:
            # The transaction was rolled back; all that are left are stored again from scratch.
            outcomes.update(_judge_all(gateway, waiting, question))
            continue
        outcomes.update(zip(waiting, stored, strict=True))
        break
    gateway.wake.set()
    return [_told(outcomes[index]) for index in range(len(jobs))]


def plan(gateway: Gateway, caller: Caller, spec: JobSpec) -> PlanView:
    """Check a submission as `submit` does, say what would become of it, and store nothing."""
    _check(gateway, caller, alone(spec), None)
    with gateway.database.read() as connection:
        book = gateway.remembered.queues(connection, read_generation(connection))
        resolved = resolve(book, spec)
        Room(connection, book, [(resolved.queue, caller.name)]).take(resolved.queue, caller.name)
        taken = job_rows.find_live_name(connection, spec.namespace, spec.name)
    require_possible(gateway, resolved.queue, request_of(spec))
    if taken is not None:
        raise name_taken(spec.namespace, spec.name)
    pods, gpus, rdma = totals_of(resolved)
    order = Place(
        rank=book.classes.get(resolved.priority_class, 0),
        highest=book.queues[resolved.queue]["priority_max"],
    )
    return PlanView(
        spec=resolved.model_dump(mode="json"),
        queue=resolved.queue,
        pods=pods,
        gpus=gpus,
        rdma=rdma,
        **preview(gateway, caller, resolved, order),
    )


def _check(gateway: Gateway, caller: Caller, job: ReadJob, key: str | None) -> Checked:
    namespace = job.known.spec.namespace
    if not caller.may_use(namespace):
        raise Denied(
            f"{caller.name} may not submit to namespace {namespace}",
            pointer="/metadata/namespace",
            value=namespace,
            allowed=caller.namespaces,
            hint="choose one of your namespaces",
        )
    if key is not None and not 0 < len(key) <= MAX_KEY_LENGTH:
        raise InvalidInput(
            f"an idempotency key has 1 to {MAX_KEY_LENGTH} characters, not {len(key)}",
            pointer="/idempotency_key",
            hint="use a UUID",
        )
    return Checked(
        gateway=gateway,
        caller=caller,
        job=job,
        key=key,
        at_us=gateway.clock.now_us(),
    )


def _judge(gateway: Gateway, question: Unjudged) -> None:
    """Find out, outside of transactions, what storing needs to know; raises NeverFits."""
    # Judging reads the fleet, and may take long: not while the one writer's lock is held.
    require_possible(gateway, question.queue, question.request)
    gateway.remembered.learn_class(gateway.database, question.request)


def _judge_all(
    gateway: Gateway, waiting: dict[int, Checked], question: Unjudged
) -> dict[int, Submitted | Exception]:
    """Judge a question for a whole batch; gives the refusals of those that asked it."""
    try:
        _judge(gateway, question)
    except NeverFits as error:
        book = gateway.remembered.book
        asked = [
            index
            for index, checked in waiting.items()
            if request_of(checked.job.known.spec) == question.request
            and queue_of(book, checked.job.known.spec) == question.queue
        ]
        for index in asked:
            del waiting[index]
        return dict.fromkeys(asked, error)
    return {}


def _store_all(batch: Sequence[Checked], writer: Writer) -> list[Submitted | Exception]:
    outcomes = store_each(writer, batch, store)
    for outcome in outcomes:
        # Raised inside, so that the transaction rolls back: its jobs would else be stored twice.
        if isinstance(outcome, Unjudged):
            raise outcome
    return outcomes


def _told(outcome: Submitted | Exception) -> Submitted | GatewayError:
    """Give what a caller may be told of; anything else fails the whole batch."""
    if isinstance(outcome, Submitted | GatewayError):
        return outcome
    raise outcome
