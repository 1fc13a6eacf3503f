"""Reading jobs: one, many, their history, attempts and assignments."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from gateway.core.vocabulary import PairRule
from gateway.db import attempts as attempt_rows
from gateway.db import jobs as job_rows
from gateway.db.engine import Connection, Row
from gateway.db.events import EventFilter, list_events
from gateway.errors import NotFound
from gateway.schemas.views import (
    AssignmentView,
    AttemptView,
    EventPage,
    JobDetail,
    JobPage,
)
from gateway.service.context import Caller, Gateway
from gateway.service.paging import match_cursor, next_cursor, number_of
from gateway.service.presenting import (
    assignment_view,
    attempt_view,
    event_view,
    job_detail,
    job_view,
)

_NUMBER = re.compile(r"[0-9]{1,18}\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFilter:
    """Which jobs to list; empty fields do not filter."""

    states: tuple[str, ...] = ()
    queue: str = ""
    user: str = ""
    namespace: str = ""
    name: str = ""
    reason: str = ""
    labels: tuple[tuple[str, str], ...] = ()
    """(key, value) pairs that a job must all have."""
    since_us: int = 0


def find_visible(connection: Connection, caller: Caller, job_id: str) -> Row:
    """Give a job's row; another tenant's job is as unknown as one that never was.

    Raises:
        NotFound: no such job for this caller.
    """
    row = job_rows.get_job(connection, job_id)
    if row is None or not caller.may_use(row["namespace"]):
        raise NotFound(
            f"job {job_id[:64]!r} does not exist", hint="list your jobs with: gateway ls"
        )
    return row


def get_job(gateway: Gateway, caller: Caller, job_id: str) -> JobDetail:
    """Give one job with what was submitted."""
    with gateway.database.read() as connection:
        row = find_visible(connection, caller, job_id)
    return job_detail(row, gateway.backend.guarantee)


def list_jobs(
    gateway: Gateway, caller: Caller, wanted: JobFilter, cursor: str = "", limit: int = 100
) -> JobPage:
    """Give a page of the caller's jobs, newest first; the cursor is the last row's number."""
    query = job_rows.JobQuery(
        states=wanted.states,
        queue=wanted.queue,
        user=wanted.user,
        name=wanted.name,
        reason=wanted.reason,
        labels=wanted.labels,
        namespaces=caller.visible_of(wanted.namespace),
        since_us=wanted.since_us,
        before_id=read_cursor(cursor),
        limit=limit + 1,
    )
    with gateway.database.read() as connection:
        rows = job_rows.list_jobs(connection, query)
    return JobPage(
        items=tuple(job_view(row, gateway.backend.guarantee) for row in rows[:limit]),
        next_cursor=next_cursor(rows, limit, number_of),
    )


def read_cursor(cursor: str) -> int:
    """Give the number in a cursor; 0 for none.

    Raises:
        InvalidInput: it is none of ours.
    """
    found = match_cursor(_NUMBER, cursor)
    return int(found[0]) if found else 0


def job_events(
    gateway: Gateway, caller: Caller, job_id: str, after_id: int = 0, limit: int = 100
) -> EventPage:
    """Give a page of a job's history, oldest first."""
    with gateway.database.read() as connection:
        row = find_visible(connection, caller, job_id)
        wanted = EventFilter(after_id=after_id, limit=limit + 1, job_id=row["id"])
        events = list_events(connection, wanted)
    return _event_page(events, limit)


def all_events(gateway: Gateway, caller: Caller, after_id: int = 0, limit: int = 100) -> EventPage:
    """Give a page of everything that happened in the caller's namespaces."""
    namespaces = None if caller.is_admin else caller.visible_namespaces()
    wanted = EventFilter(after_id=after_id, limit=limit + 1, namespaces=namespaces)
    with gateway.database.read() as connection:
        events = list_events(connection, wanted)
    return _event_page(events, limit)


def _event_page(rows: Sequence[Row], limit: int) -> EventPage:
    return EventPage(
        items=tuple(map(event_view, rows[:limit])),
        next_cursor=next_cursor(rows, limit, number_of),
    )


def job_attempts(gateway: Gateway, caller: Caller, job_id: str) -> tuple[AttemptView, ...]:
    """Give a job's attempts by number."""
    with gateway.database.read() as connection:
        row = find_visible(connection, caller, job_id)
        found = attempt_rows.attempts_of(connection, row["id"])
    return tuple(map(attempt_view, found))


def job_assignments(
    gateway: Gateway, caller: Caller, job_id: str, attempt: int | None = None
) -> tuple[AssignmentView, ...]:
    """Give who runs where on which devices, for the last attempt or the one named."""
    with gateway.database.read() as connection:
        job = find_visible(connection, caller, job_id)
        found = choose_attempt(attempt_rows.attempts_of(connection, job["id"]), attempt)
        if found is None:
            return ()
        pods = attempt_rows.pods_of(connection, found["id"])
        held = attempt_rows.devices_of(connection, found["id"])
    rules = {item["name"]: PairRule(item["pair"]) for item in job["spec"]["pod_sets"]}
    return tuple(
        assignment_view(pod, list(held.get(pod["id"], ())), found, rules[pod["pod_set"]])
        for pod in pods
    )


def choose_attempt(attempts: Sequence[Row], number: int | None) -> Row | None:
    """Give the attempt of this number, the last one for None; None where there is none."""
    matching = (row for row in reversed(attempts) if number in {None, row["number"]})
    return next(matching, None)
