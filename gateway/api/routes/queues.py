"""Queues: created, read, replaced and deleted, guarded by ETag."""

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from gateway.api.answers import answer, items, nothing
from gateway.api.dependencies import plain, require_name, with_body
from gateway.api.identifiers import NAME
from gateway.api.openapi import described
from gateway.schemas.definitions import QueuePage, QueueSpec, QueueView
from gateway.service import queues as service

router = APIRouter(tags=["queues"])


@router.get("/queues", **described(QueuePage))
def list_queues(request: Request) -> Response:
    """List queues by name."""
    ask = plain(request)
    return items(service.list_queues(ask.gateway, ask.caller))


@router.post("/queues", **described(QueueView, status=201, body=QueueSpec))
def create_queue(request: Request) -> Response:
    """Create a queue."""
    ask, spec = with_body(request, QueueSpec)
    ask.refuse_condition()
    view = service.create_queue(ask.gateway, ask.caller, spec)
    response = answer(view, status=201, version=view.version)
    # RFC 9110, section 15.3.2: a 201 names what it created, otherwise it would be the list itself.
    response.headers["Location"] = f"/api/v1/queues/{view.name}"
    return response


@router.get(f"/queues/{NAME}", **described(QueueView))
def get_queue(name: str, request: Request) -> Response:
    """Give one queue with its version as ETag."""
    ask = plain(request)
    view = service.get_queue(ask.gateway, ask.caller, name)
    return answer(view, version=view.version)


@router.put(f"/queues/{NAME}", **described(QueueView, body=QueueSpec))
def replace_queue(name: str, request: Request) -> Response:
    """Replace a queue; with If-Match, only if it still has that version."""
    ask, spec = with_body(request, QueueSpec)
    require_name(spec.name, name)
    view = service.update_queue(ask.gateway, ask.caller, name, spec, ask.if_version())
    return answer(view, version=view.version)


@router.delete(f"/queues/{NAME}", **described(status=204))
def delete_queue(name: str, request: Request) -> Response:
    """Delete a queue; with If-Match, only if it still has that version."""
    ask = plain(request)
    service.delete_queue(ask.gateway, ask.caller, name, ask.if_version())
    return nothing()


@router.post(f"/queues/{NAME}:pause", **described(QueueView))
def pause_queue(name: str, request: Request) -> Response:
    """Admit nothing more from this queue; what runs goes on."""
    ask = plain(request)
    ask.refuse_condition()
    # No version is asked for: one field changes whatever the others are, and in an emergency nobody
    # should have to try twice.
    view = service.pause_queue(ask.gateway, ask.caller, name)
    return answer(view, version=view.version)


@router.post(f"/queues/{NAME}:resume", **described(QueueView))
def resume_queue(name: str, request: Request) -> Response:
    """Admit from this queue again."""
    ask = plain(request)
    ask.refuse_condition()
    view = service.resume_queue(ask.gateway, ask.caller, name)
    return answer(view, version=view.version)
