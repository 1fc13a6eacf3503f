"""Cohorts: created, read, replaced and deleted, guarded by ETag."""

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from gateway.api.answers import answer, items, nothing
from gateway.api.dependencies import plain, require_name, with_body
from gateway.api.identifiers import NAME
from gateway.api.openapi import described
from gateway.schemas.definitions import CohortPage, CohortSpec, CohortView
from gateway.service import cohorts as service

router = APIRouter(tags=["cohorts"])


@router.get("/cohorts", **described(CohortPage))
def list_cohorts(request: Request) -> Response:
    """List cohorts by name."""
    ask = plain(request)
    return items(service.list_cohorts(ask.gateway, ask.caller))


@router.post("/cohorts", **described(CohortView, status=201, body=CohortSpec))
def create_cohort(request: Request) -> Response:
    """Create a cohort."""
    ask, spec = with_body(request, CohortSpec)
    # There is no version yet that a condition could ask for.
    ask.refuse_condition()
    view = service.create_cohort(ask.gateway, ask.caller, spec)
    response = answer(view, status=201, version=view.version)
    response.headers["Location"] = f"/api/v1/cohorts/{view.name}"
    return response


@router.get(f"/cohorts/{NAME}", **described(CohortView))
def get_cohort(name: str, request: Request) -> Response:
    """Give one cohort with its version as ETag."""
    ask = plain(request)
    view = service.get_cohort(ask.gateway, ask.caller, name)
    return answer(view, version=view.version)


@router.put(f"/cohorts/{NAME}", **described(CohortView, body=CohortSpec))
def replace_cohort(name: str, request: Request) -> Response:
    """Replace a cohort; with If-Match, only if it still has that version."""
    ask, spec = with_body(request, CohortSpec)
    require_name(spec.name, name)
    view = service.update_cohort(ask.gateway, ask.caller, name, spec, ask.if_version())
    return answer(view, version=view.version)


@router.delete(f"/cohorts/{NAME}", **described(status=204))
def delete_cohort(name: str, request: Request) -> Response:
    """Delete a cohort; with If-Match, only if it still has that version."""
    ask = plain(request)
    # The service compares in the transaction that deletes; looking first would leave a gap.
    service.delete_cohort(ask.gateway, ask.caller, name, ask.if_version())
    return nothing()
