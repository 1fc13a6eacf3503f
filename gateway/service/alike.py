"""What jobs of one template share once they meet the queues; the rest is little for each of them.

Made anew in each transaction from the definitions that it reads, so that nothing here can be out of
date. The jobs of a batch or of a commit group mostly share one.
"""

import secrets
from datetime import datetime
from functools import cached_property
from typing import NamedTuple

from gateway.core.jobs.request import RequestClass
from gateway.core.vocabulary import JobState, Reason
from gateway.db.submissions import NewJob, QueueBook
from gateway.manifests.remembering import Known, ReadJob, text_parts
from gateway.schemas.base import micros_of
from gateway.schemas.job_spec import JobSpec
from gateway.service.choosing import resolve
from gateway.service.context import Caller, Gateway
from gateway.service.feasibility import is_known_to_fit
from gateway.service.gangs import request_of, totals_of
from gateway.service.presenting import NewJobText, new_job_view


class Checked(NamedTuple):
    """A submission that passed every check that needs no transaction."""

    gateway: Gateway
    caller: Caller
    job: ReadJob
    key: str | None
    at_us: int


class Unjudged(Exception):
    """Whether a job could ever fit into this queue is not known yet; the transaction cannot say."""

    def __init__(self, queue: str, request: RequestClass) -> None:
        """Say what is to be judged."""
        super().__init__(queue)
        self.queue = queue
        self.request = request


class Alike:
    """Jobs of one template and caller in one transaction."""

    def __init__(self, example: Checked, book: QueueBook) -> None:
        """Meet the queues; raises InvalidInput, Denied or Unjudged for each job of the kind."""
        gateway = example.gateway
        spec = resolve(book, example.job.known.spec)
        request = request_of(spec)
        # Both come from memory; asking the database for each job would be most of a submit.
        class_id = gateway.remembered.class_ids.get(request)
        if class_id is None or not is_known_to_fit(gateway, spec.queue, request):
            raise Unjudged(spec.queue, request)
        row = _row_without_name(spec, class_id, example.caller.name)
        self._row = row._replace(rank=book.classes.get(spec.priority_class, 0))
        self._spec_parts = text_parts(spec)
        self._labels = spec.labels

    def row(self, checked: Checked) -> NewJob:
        """Give the row of one of these jobs."""
        name = checked.job.name
        return self._row._replace(
            uid=new_uid(checked.at_us),
            name=name,
            idempotency_key=checked.key,
            spec=name.join(self._spec_parts),
            spec_digest=checked.job.digest,
            submitted_us=checked.at_us,
        )

    def text(self, row: NewJob) -> str:
        """Give one of these jobs, once it is inserted, as a `JobView` in JSON."""
        return self._text.of(row.uid, row.name, row.submitted_us)

    @cached_property
    def _text(self) -> NewJobText:
        return NewJobText(new_job_view(self._row._asdict(), self._labels))


class Kinds:
    """The kinds of jobs of one transaction, each looked at once."""

    def __init__(self, book: QueueBook) -> None:
        """Use these definitions."""
        self._book = book
        self._seen: dict[tuple[Known, str], Alike] = {}

    def of(self, checked: Checked) -> Alike:
        """Give the kind of a job; raises what making it raises."""
        # By identity: comparing whole specs would cost what sharing saves.
        place = checked.job.known, checked.caller.name
        found = self._seen.get(place)
        if found is None:
            found = self._seen[place] = Alike(checked, self._book)
        return found


def new_uid(at_us: int) -> str:
    """Give a job's public id, a UUID of version 7 (RFC 9562).

    Ids of one moment stand side by side in the index; random ones would touch a page each.
    """
    # Version and variant take six of the 128 bits, the milliseconds 48.
    random = secrets.randbits(74)
    high = (at_us // 1000) << 16 | 0x7000 | random >> 62
    low = 1 << 63 | random & (1 << 62) - 1
    # uuid.UUID would check and convert for longer than all the rest takes.
    text = f"{high << 64 | low:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def _row_without_name(spec: JobSpec, class_id: int, user: str) -> NewJob:
    pods, gpus, rdma = totals_of(spec)
    return NewJob(
        uid="",
        name="",
        namespace=spec.namespace,
        queue=spec.queue,
        user_name=user,
        idempotency_key=None,
        spec="",
        spec_digest="",
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
        submitted_us=0,
        priority_class=spec.priority_class,
        eligible_us=max(0, _micros(spec.not_before_at)),
        # At least 1, for 0 is none: a deadline before 1970 is one that is missed.
        deadline_us=0 if spec.deadline_at is None else max(1, _micros(spec.deadline_at)),
        expected_seconds=spec.expected_seconds or 0,
    )


def _micros(text: str | None) -> int:
    return 0 if text is None else micros_of(datetime.fromisoformat(text))
