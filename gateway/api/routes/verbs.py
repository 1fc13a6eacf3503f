"""What users do to jobs: cancel, hold, release, requeue, reprioritise, top."""

from fastapi import APIRouter
from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from gateway.api.answers import answer
from gateway.api.dependencies import plain, with_body
from gateway.api.identifiers import JOB
from gateway.api.openapi import described
from gateway.schemas.base import WireModel
from gateway.schemas.views import JobView
from gateway.service import reprioritising, topping, verbs
from gateway.service.reprioritising import NewPlace

router = APIRouter(tags=["jobs"])


class NewPriority(WireModel):
    """Body of :reprioritise; what is left out stays."""

    # As high as Kubernetes lets users' PriorityClasses go; above are those of the system.
    priority: int | None = Field(default=None, ge=-1_000_000_000, le=1_000_000_000)
    priority_class: str | None = Field(default=None, max_length=63)
    """Empty takes the job's class away."""


@router.post(f"/jobs/{JOB}:cancel", **described(JobView))
def cancel(job_id: str, request: Request) -> Response:
    """Cancel: at once while the job waits, by stopping its pods otherwise."""
    ask = plain(request)
    return _answer(verbs.cancel(ask.gateway, ask.caller, job_id, ask.if_version()))


@router.post(f"/jobs/{JOB}:hold", **described(JobView))
def hold(job_id: str, request: Request) -> Response:
    """Keep a pending job from being considered."""
    ask = plain(request)
    return _answer(verbs.hold(ask.gateway, ask.caller, job_id, ask.if_version()))


@router.post(f"/jobs/{JOB}:release", **described(JobView))
def release(job_id: str, request: Request) -> Response:
    """Let a held or quarantined job be considered again."""
    ask = plain(request)
    return _answer(verbs.release(ask.gateway, ask.caller, job_id, ask.if_version()))


@router.post(f"/jobs/{JOB}:requeue", **described(JobView))
def requeue(job_id: str, request: Request) -> Response:
    """Stop the present attempt; the job waits again with its old submit time."""
    ask = plain(request)
    return _answer(verbs.requeue(ask.gateway, ask.caller, job_id, ask.if_version()))


@router.post(f"/jobs/{JOB}:reprioritise", **described(JobView, body=NewPriority))
def reprioritise(job_id: str, request: Request) -> Response:
    """Change a waiting job's priority, clamped to its queue's range, or its priority class."""
    ask, body = with_body(request, NewPriority)
    wanted = NewPlace(priority=body.priority, priority_class=body.priority_class)
    version = ask.if_version()
    return _answer(reprioritising.reprioritise(ask.gateway, ask.caller, job_id, wanted, version))


@router.post(f"/jobs/{JOB}:top", **described(JobView))
def top(job_id: str, request: Request) -> Response:
    """Put a pending job first in its queue; If-Match takes the ETag of the queue's order."""
    ask = plain(request)
    return _answer(topping.top(ask.gateway, ask.caller, job_id, ask.if_version()))


def _answer(job: JobView) -> Response:
    return answer(job, version=job.version)
