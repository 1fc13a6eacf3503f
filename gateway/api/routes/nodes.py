"""Nodes of the fleet: list, look at, cordon, uncordon."""

from fastapi import APIRouter
from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from gateway.api.answers import answer
from gateway.api.dependencies import PageQuery, plain, with_body, with_query
from gateway.api.identifiers import NAME
from gateway.api.openapi import described
from gateway.schemas.base import WireModel
from gateway.schemas.views import FragmentationView, NodePage, NodeView
from gateway.service import devices as service
from gateway.service.stranding import fragmentation

router = APIRouter(tags=["nodes"])


class Cordon(WireModel):
    """Body of :cordon."""

    reason: str = Field(default="", max_length=500)


@router.get("/nodes", **described(NodePage, query=PageQuery))
def list_nodes(request: Request) -> Response:
    """List nodes by name."""
    ask, query = with_query(request, PageQuery)
    page = service.list_nodes(ask.gateway, ask.caller, ask.open_cursor(query), query.limit)
    return answer(page.model_copy(update={"next_cursor": ask.seal_cursor(page.next_cursor, query)}))


@router.get(f"/nodes/{NAME}", **described(NodeView))
def get_node(name: str, request: Request) -> Response:
    """Give one node."""
    ask = plain(request)
    # A node's labels and counts are for all who may submit; only holders are a tenant's secret.
    node = service.get_node(ask.gateway, ask.caller, name)
    return answer(node, version=node.version)


@router.post(f"/nodes/{NAME}:cordon", **described(NodeView, body=Cordon))
def cordon_node(name: str, request: Request) -> Response:
    """Place nothing more on a node; what runs goes on."""
    ask, wanted = with_body(request, Cordon)
    ask.refuse_condition()
    # Cordoning twice is fine and states the reason anew, so a version would only get in the way.
    return answer(service.cordon_node(ask.gateway, ask.caller, name, wanted.reason))


@router.post(f"/nodes/{NAME}:uncordon", **described(NodeView))
def uncordon_node(name: str, request: Request) -> Response:
    """Place jobs on a node again."""
    ask = plain(request)
    ask.refuse_condition()
    return answer(service.uncordon_node(ask.gateway, ask.caller, name))


@router.get("/fragmentation", **described(FragmentationView))
def get_fragmentation(request: Request) -> Response:
    """Give how many pods of each size the free GPUs have room for, and how many they add up to."""
    return answer(fragmentation(plain(request).gateway))
