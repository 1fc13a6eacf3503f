"""Stores checked submissions: all of a commit group at once, each with its own outcome.

One pass decides from what is remembered, one statement inserts, and only what the database left out
is looked at again. Nothing here judges a manifest or the fleet.
"""

from collections.abc import Container, Mapping, Sequence
from typing import NamedTuple

from gateway.db import jobs as job_rows
from gateway.db.engine import Connection, Row, Writer
from gateway.db.submissions import NewJob, QueueBook, insert_jobs
from gateway.errors import GatewayError, KeyReused, NameTaken, OverCap
from gateway.schemas.views import JobView
from gateway.service.alike import Checked, Kinds, Unjudged
from gateway.service.choosing import unknown_queue
from gateway.service.presenting import job_view
from gateway.service.rationing import Room, room_for, with_ranks


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

    Errors: InvalidInput and Denied for the queue, OverCap, NameTaken, KeyReused, Unjudged.
    """
    book = batch[0].gateway.remembered.queues(writer.connection, writer.generation)
    kinds = Kinds(book)
    rows: dict[int, NewJob] = {}
    refused: dict[int, Exception] = {}
    for index, checked in enumerate(batch):
        try:
            rows[index] = kinds.of(checked).row(checked)
        except (GatewayError, Unjudged) as error:
            refused[index] = error
    inserted, left_out = _insert(writer, book, rows)
    refused |= left_out
    return [
        # Every job begins with version 1, which is why its row need not be read back.
        Submitted(inserted[index].uid, 1, is_new=True, text=kinds.of(checked).text(inserted[index]))
        if index in inserted
        # Keys are looked up only for what is not stored: most jobs are new.
        else _earlier(writer.connection, checked, refused[index])
        for index, checked in enumerate(batch)
    ]


def _insert(
    writer: Writer, book: QueueBook, rows: Mapping[int, NewJob]
) -> tuple[dict[int, NewJob], dict[int, Exception]]:
    """Insert what classes and caps let in; gives what was stored and why the others were not."""
    waiting, refused = with_ranks(writer, rows)
    room = room_for(writer, book, waiting.values())
    inserted: dict[int, NewJob] = {}
    while waiting:
        taken, over_cap = _take(room, waiting)
        stored = insert_jobs(writer, list(taken.values()))
        new = taken if len(stored) == len(taken) else _stored(taken, stored)
        inserted |= new
        left_out = {index: taken[index] for index in taken.keys() - new.keys()}
        for index, row in left_out.items():
            room.give_back(row.queue, row.user_name)
            refused[index] = _why_left_out(writer.connection, row)
        refused |= over_cap
        # A job that was there already took nobody's room: those that it kept out try again.
        waiting = {index: waiting[index] for index in over_cap} if left_out else {}
    return inserted, refused


def _stored(rows: Mapping[int, NewJob], uids: Container[str]) -> dict[int, NewJob]:
    return {index: row for index, row in rows.items() if row.uid in uids}


def _take(room: Room, rows: Mapping[int, NewJob]) -> tuple[dict[int, NewJob], dict[int, Exception]]:
    if room.is_unlimited:
        return dict(rows), {}
    taken: dict[int, NewJob] = {}
    refused: dict[int, Exception] = {}
    for index, row in rows.items():
        try:
            room.take(row.queue, row.user_name)
            taken[index] = row
        except OverCap as error:
            refused[index] = error
    return taken, refused


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
