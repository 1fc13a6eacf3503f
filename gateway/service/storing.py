"""Stores checked submissions: all of a commit group at once, each with its own outcome.

One pass decides from what is remembered, one statement inserts, and only what the database left out
is looked at again. Nothing here judges a manifest or the fleet.
"""

from collections.abc import Sequence
from typing import NamedTuple

from gateway.db import jobs as job_rows
from gateway.db.engine import Connection, Row, Writer
from gateway.db.submissions import NewJob, insert_jobs
from gateway.errors import GatewayError, KeyReused, NameTaken
from gateway.schemas.views import JobView
from gateway.service.alike import Alike, Checked, Kinds, Unjudged
from gateway.service.choosing import unknown_queue
from gateway.service.presenting import job_view


class Submitted(NamedTuple):
    """What came of a submission; `is_new` is False for a repeated key."""

    job_id: str
    version: int
    is_new: bool
    text: str
    """The job as JSON; most are answered over HTTP, and never become a model here."""

    @property
    def job(self) -> JobView:
        """The job."""
        return JobView.model_validate_json(self.text)


def store(writer: Writer, batch: Sequence[Checked]) -> list[Submitted | Exception]:
    """Insert these jobs with their first events; gives for each what came of it.

    Errors: InvalidInput and Denied for the queue, NameTaken, KeyReused, Unjudged.
    """
    outcomes: dict[int, Submitted | Exception] = {}
    rows: dict[int, tuple[Alike, NewJob]] = {}
    kinds = Kinds(batch[0].gateway.remembered.queues(writer.connection, writer.generation))
    for index, checked in enumerate(batch):
        try:
            kind = kinds.of(checked)
            rows[index] = kind, kind.row(checked)
        except (GatewayError, Unjudged) as error:
            # Keys are looked up for the others only where the insert says so: most jobs are new.
            outcomes[index] = _earlier(writer.connection, checked, error)
    inserted = insert_jobs(writer, [row for _, row in rows.values()])
    for index, (kind, row) in rows.items():
        if row.uid in inserted:
            # Every job begins with version 1, which is why its row need not be read back.
            outcomes[index] = Submitted(row.uid, 1, is_new=True, text=kind.text(row))
        else:
            why = _why_left_out(writer.connection, row)
            outcomes[index] = _earlier(writer.connection, batch[index], why)
    return [outcomes[index] for index in range(len(batch))]


def name_taken(namespace: str, name: str) -> NameTaken:
    """Give the refusal of a name that a live job has."""
    return NameTaken(
        f"a live job named {name!r} exists in namespace {namespace}",
        pointer="/metadata/name",
        value=name,
        hint="wait for it, cancel it, or choose another name",
    )


def _why_left_out(connection: Connection, row: NewJob) -> GatewayError:
    # A job whose key is taken gets here too, and is then found by its key.
    if job_rows.find_live_name(connection, row.namespace, row.name) is not None:
        return name_taken(row.namespace, row.name)
    return unknown_queue(row.queue, job_rows.queue_names(connection))


def _earlier(connection: Connection, checked: Checked, error: Exception) -> Submitted | Exception:
    """Give the job of this key if there is one: a repeated submit succeeds whatever changed."""
    found = _of_key(connection, checked)
    if found is None:
        return error
    if found["spec_digest"] == checked.job.digest:
        text = job_view(found).model_dump_json()
        return Submitted(found["uid"], found["version"], is_new=False, text=text)
    return KeyReused(
        f"idempotency key {checked.key!r} was used for job {found['uid']} with another body",
        pointer="/idempotency_key",
        value=checked.key,
        hint="use a new key for a new job",
    )


def _of_key(connection: Connection, checked: Checked) -> Row | None:
    if checked.key is None:
        return None
    namespace = checked.job.known.spec.namespace
    return job_rows.find_by_key(connection, checked.caller.name, namespace, checked.key)
