"""Flavors: created, read, replaced and deleted, guarded by ETag."""

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from gateway.api.answers import answer, items, nothing
from gateway.api.dependencies import plain, require_name, with_body
from gateway.api.identifiers import NAME
from gateway.api.openapi import described
from gateway.schemas.definitions import FlavorPage, FlavorSpec, FlavorView
from gateway.service import flavors as service

router = APIRouter(tags=["flavors"])


@router.get("/flavors", **described(FlavorPage))
def list_flavors(request: Request) -> Response:
    """List flavors by name."""
    ask = plain(request)
    return items(service.list_flavors(ask.gateway, ask.caller))


@router.post("/flavors", **described(FlavorView, status=201, body=FlavorSpec))
def create_flavor(request: Request) -> Response:
    """Create a flavor."""
    ask, spec = with_body(request, FlavorSpec)
    ask.refuse_condition()
    view = service.create_flavor(ask.gateway, ask.caller, spec)
    response = answer(view, status=201, version=view.version)
    response.headers["Location"] = f"/api/v1/flavors/{view.name}"
    return response


@router.get(f"/flavors/{NAME}", **described(FlavorView))
def get_flavor(name: str, request: Request) -> Response:
    """Give one flavor with its version as ETag."""
    ask = plain(request)
    view = service.get_flavor(ask.gateway, ask.caller, name)
    return answer(view, version=view.version)


@router.put(f"/flavors/{NAME}", **described(FlavorView, body=FlavorSpec))
def replace_flavor(name: str, request: Request) -> Response:
    """Replace a flavor; with If-Match, only if it still has that version."""
    ask, spec = with_body(request, FlavorSpec)
    # A rename would leave quotas that name the old flavor behind; they refer to it by name.
    require_name(spec.name, name)
    view = service.update_flavor(ask.gateway, ask.caller, name, spec, ask.if_version())
    return answer(view, version=view.version)


@router.delete(f"/flavors/{NAME}", **described(status=204))
def delete_flavor(name: str, request: Request) -> Response:
    """Delete a flavor; with If-Match, only if it still has that version."""
    ask = plain(request)
    service.delete_flavor(ask.gateway, ask.caller, name, ask.if_version())
    return nothing()
