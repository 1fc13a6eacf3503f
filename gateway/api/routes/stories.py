"""What became of one job: explanation, history, attempts, places, log lines."""

from fastapi import APIRouter
from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from gateway.api.answers import answer, items
from gateway.api.dependencies import PageQuery, plain, with_query
from gateway.api.identifiers import JOB
from gateway.api.openapi import described
from gateway.api.reading import QueryModel
from gateway.api.streaming import log_response
from gateway.errors import InvalidInput
from gateway.schemas.views import AssignmentPage, AttemptPage, EventPage, ExplainView
from gateway.service import jobs as service
from gateway.service.explaining import explain
from gateway.service.logs import LogOptions, job_logs

router = APIRouter(tags=["jobs"])


class AttemptQuery(QueryModel):
    """Which attempt."""

    attempt: int | None = Field(default=None, ge=1, le=2**31)
    """Its number; the last one when left out."""


class LogsQuery(AttemptQuery):
    """Which lines."""

    rank: int = Field(default=0, ge=0, le=2**31)
    follow: bool = False
    """Wait for more lines until the rank has ended."""
    tail: int | None = Field(default=None, ge=1, le=1_000_000)
    """Only the last lines."""
    # Up to what a double holds exactly, since JavaScript clients have no other numbers.
    skip: int = Field(default=0, ge=0, le=2**53)
    """Leave out this many lines at the start: how a client goes on after a broken connection."""


@router.get(f"/jobs/{JOB}/explain", **described(ExplainView))
def explain_job(job_id: str, request: Request) -> Response:
    """Say why a job waits, or what became of it."""
    ask = plain(request)
    return answer(explain(ask.gateway, ask.caller, job_id))


@router.get(f"/jobs/{JOB}/events", **described(EventPage, query=PageQuery))
def list_events(job_id: str, request: Request) -> Response:
    """Give a job's history, oldest first."""
    ask, query = with_query(request, PageQuery)
    after = int(ask.open_cursor(query) or 0)
    page = service.job_events(ask.gateway, ask.caller, job_id, after, query.limit)
    return answer(page.model_copy(update={"next_cursor": ask.seal_cursor(page.next_cursor, query)}))


@router.get(f"/jobs/{JOB}/attempts", **described(AttemptPage))
def list_attempts(job_id: str, request: Request) -> Response:
    """Give a job's attempts by number."""
    ask = plain(request)
    return items(service.job_attempts(ask.gateway, ask.caller, job_id))


@router.get(f"/jobs/{JOB}/assignments", **described(AssignmentPage, query=AttemptQuery))
def list_assignments(job_id: str, request: Request) -> Response:
    """Give which pod runs on which node with which devices."""
    ask, query = with_query(request, AttemptQuery)
    return items(service.job_assignments(ask.gateway, ask.caller, job_id, query.attempt))


@router.get(f"/jobs/{JOB}/logs", **described("text/plain", query=LogsQuery))
def read_logs(job_id: str, request: Request) -> Response:
    """Give the lines of one rank as text, live with `follow`."""
    ask, query = with_query(request, LogsQuery)
    # Together they would depend on how many lines there are at that moment.
    if query.tail is not None and query.skip:
        raise InvalidInput(
            "skip counts from the first line, tail from the last",
            pointer="/skip",
            value=query.skip,
            hint="give one of them",
        )
    wanted = LogOptions(
        rank=query.rank, follow=query.follow, tail=query.tail, attempt=query.attempt or 0
    )
    lines = job_logs(ask.gateway, ask.caller, job_id, wanted)
    return log_response(lines, skip=query.skip, is_live=query.follow)
