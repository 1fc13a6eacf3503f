"""Jobs: submit one or many, list them, look at one."""

from datetime import timedelta
from typing import Any, Literal

from fastapi import APIRouter
from pydantic import AwareDatetime
from starlette.requests import Request
from starlette.responses import Response

from gateway.api.answers import answer, written
from gateway.api.batch_answers import submit_entries
from gateway.api.dependencies import PageQuery, ask_of, plain, with_query
from gateway.api.identifiers import JOB
from gateway.api.openapi import described
from gateway.api.plain_route import PlainRoute
from gateway.api.reading import QueryModel, read_query
from gateway.api.submissions import BATCH_CONTENT, ONE_CONTENT, read_submission
from gateway.core.vocabulary import JobState, Reason
from gateway.errors import InvalidInput
from gateway.schemas.base import instant
from gateway.schemas.views import BatchAnswer, JobDetail, JobPage, JobView
from gateway.service import jobs as service
from gateway.service.submit import plan, submit
from gateway.service.verbs import cancel

router = APIRouter(tags=["jobs"], route_class=PlainRoute)
MICROSECOND = timedelta(microseconds=1)


class SubmitQuery(QueryModel):
    """How to submit; what is given here wins over the manifest."""

    dry_run: Literal["", "plan"] = ""
    """`plan` runs every check and stores nothing."""
    queue: str | None = None
    priority: int | None = None
    name: str | None = None
    namespace: str | None = None
    hold: bool | None = None


class JobsQuery(PageQuery):
    """Which jobs to list; what is left out does not filter."""

    state: tuple[JobState, ...] = ()
    """Comma separated or repeated."""
    queue: str = ""
    user: str = ""
    namespace: str = ""
    name: str = ""
    reason: Reason | None = None
    since: AwareDatetime | None = None
    """Submitted at or after this instant, with its time zone."""
    label: tuple[str, ...] = ()
    """KEY=VALUE, comma separated or repeated; all must be there."""


@router.post("/jobs", **described(JobView, status=201, query=SubmitQuery, body=ONE_CONTENT))
def create_job(request: Request) -> Response:
    """Submit one job; the same Idempotency-Key gives the same job again, with status 200."""
    ask = ask_of(request)
    query = read_query(SubmitQuery, ask.query_string)
    overrides = query.model_dump(exclude={"dry_run"}, exclude_none=True)
    job = read_submission(ask, overrides)
    if query.dry_run:
        return answer(plan(ask.gateway, ask.caller, job.spec))
    submitted = submit(ask.gateway, ask.caller, job, ask.idempotency_key())
    # 200 tells a client whose first answer was lost that its job had been stored all along.
    status = 201 if submitted.is_new else 200
    response = written(submitted.text, status=status, version=submitted.version)
    response.headers["Location"] = f"/api/v1/jobs/{submitted.job_id}"
    return response


@router.post("/jobs:batch", **described(BatchAnswer, body=BATCH_CONTENT))
def create_jobs(request: Request) -> Response:
    """Submit up to 1,000 jobs; each succeeds or fails alone, in the order sent."""
    ask = ask_of(request)
    read_query(QueryModel, ask.query_string)
    return written(submit_entries(ask))


@router.get("/jobs", **described(JobPage, query=JobsQuery))
def list_jobs(request: Request) -> Response:
    """List jobs of the caller's namespaces, newest first."""
    ask, query = with_query(request, JobsQuery)
    page = service.list_jobs(
        ask.gateway, ask.caller, _filter(query), ask.open_cursor(query), query.limit
    )
    return answer(page.model_copy(update={"next_cursor": ask.seal_cursor(page.next_cursor, query)}))


def _filter(query: JobsQuery) -> service.JobFilter:
    same: dict[str, Any] = query.model_dump(include={"queue", "user", "namespace", "name"})
    # In whole microseconds: as a float an instant may lose its last one, and with it a job.
    since_us = 0 if query.since is None else (query.since - instant(0)) // MICROSECOND
    return service.JobFilter(
        states=query.state,
        reason=query.reason or "",
        labels=tuple(_label(text) for text in query.label),
        since_us=max(since_us, 0),
        **same,
    )


def _label(text: str) -> tuple[str, str]:
    # Cut at the first sign: Kubernetes allows none in keys, and an empty value is a value.
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise InvalidInput(
            "a label is KEY=VALUE", pointer="/label", value=text, hint="for example: team=vision"
        )
    return key, value


@router.get(f"/jobs/{JOB}", **described(JobDetail))
def get_job(job_id: str, request: Request) -> Response:
    """Give one job with what was submitted."""
    ask = plain(request)
    job = service.get_job(ask.gateway, ask.caller, job_id)
    return answer(job, version=job.version)


@router.delete(f"/jobs/{JOB}", **described(JobView))
def delete_job(job_id: str, request: Request) -> Response:
    """Cancel a job; its history stays."""
    ask = plain(request)
    job = cancel(ask.gateway, ask.caller, job_id, ask.if_version())
    return answer(job, version=job.version)
