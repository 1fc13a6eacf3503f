"""Priority classes: created, read, replaced and deleted, guarded by ETag."""

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from gateway.api.answers import answer, items, nothing
from gateway.api.dependencies import plain, require_name, with_body
from gateway.api.identifiers import NAME
from gateway.api.openapi import described
from gateway.schemas.definitions import (
    PriorityClassPage,
    PriorityClassSpec,
    PriorityClassView,
)
from gateway.service import priority_classes as service

router = APIRouter(tags=["priority classes"])


@router.get("/priority-classes", **described(PriorityClassPage))
def list_priority_classes(request: Request) -> Response:
    """List priority classes by name."""
    ask = plain(request)
    return items(service.list_priority_classes(ask.gateway, ask.caller))


@router.post(
    "/priority-classes", **described(PriorityClassView, status=201, body=PriorityClassSpec)
)
def create_priority_class(request: Request) -> Response:
    """Create a priority class."""
    ask, spec = with_body(request, PriorityClassSpec)
    ask.refuse_condition()
    view = service.create_priority_class(ask.gateway, ask.caller, spec)
    response = answer(view, status=201, version=view.version)
    response.headers["Location"] = f"/api/v1/priority-classes/{view.name}"
    return response


@router.get(f"/priority-classes/{NAME}", **described(PriorityClassView))
def get_priority_class(name: str, request: Request) -> Response:
    """Give one priority class with its version as ETag."""
    ask = plain(request)
    view = service.get_priority_class(ask.gateway, ask.caller, name)
    return answer(view, version=view.version)


@router.put(f"/priority-classes/{NAME}", **described(PriorityClassView, body=PriorityClassSpec))
def replace_priority_class(name: str, request: Request) -> Response:
    """Replace a priority class; with If-Match, only if it still has that version."""
    ask, spec = with_body(request, PriorityClassSpec)
    require_name(spec.name, name)
    view = service.update_priority_class(ask.gateway, ask.caller, name, spec, ask.if_version())
    return answer(view, version=view.version)


@router.delete(f"/priority-classes/{NAME}", **described(status=204))
def delete_priority_class(name: str, request: Request) -> Response:
    """Delete a priority class; with If-Match, only if it still has that version."""
    ask = plain(request)
    service.delete_priority_class(ask.gateway, ask.caller, name, ask.if_version())
    return nothing()
