"""All definitions as one document: apply and export."""

from typing import Literal

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from gateway.api.answers import answer
from gateway.api.dependencies import JSON, ask_of, plain
from gateway.api.openapi import described
from gateway.api.reading import QueryModel, read_model, read_query
from gateway.schemas.base import View
from gateway.schemas.definitions import DefinitionSet
from gateway.service import definitions as service

router = APIRouter(tags=["definitions"])


class ApplyQuery(QueryModel):
    """How to apply."""

    dry_run: Literal["", "true", "false"] = ""
    """`true` lists the changes and makes none."""


class Applied(View):
    """What `apply` changed, one line a change; empty when nothing differed."""

    changes: tuple[str, ...]


@router.get("/definitions", **described(DefinitionSet))
def export_definitions(request: Request) -> Response:
    """Give every definition as one document."""
    ask = plain(request)
    return answer(service.export(ask.gateway, ask.caller))


@router.post("/definitions", **described(Applied, query=ApplyQuery, body=DefinitionSet))
def apply_definitions(request: Request) -> Response:
    """Bring definitions to what the document says, in one transaction; deletes nothing."""
    ask = ask_of(request)
    query = read_query(ApplyQuery, ask.query_string)
    ask.require_type(JSON)
    wanted = read_model(DefinitionSet, ask.body)
    is_dry = query.dry_run == "true"
    changes = service.apply(ask.gateway, ask.caller, wanted, dry_run=is_dry)
    return answer(Applied(changes=changes))
