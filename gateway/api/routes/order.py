"""Who comes when in a queue, and who has how much of what."""

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from gateway.api.answers import answer
from gateway.api.dependencies import PageQuery, plain, with_query
from gateway.api.identifiers import NAME
from gateway.api.openapi import described
from gateway.schemas.order import OrderPage, SharesView
from gateway.service import ordering, shares

router = APIRouter(tags=["queues"])


@router.get(f"/queues/{NAME}/order", **described(OrderPage, query=PageQuery))
def get_order(name: str, request: Request) -> Response:
    """Rank who waits in a queue with every term of the order; the ETag is the list's number."""
    ask, query = with_query(request, PageQuery)
    cursor = ask.open_cursor(query)
    page = ordering.queue_order(ask.gateway, ask.caller, name, cursor, query.limit)
    sealed = page.model_copy(update={"next_cursor": ask.seal_cursor(page.next_cursor, query)})
    return answer(sealed, version=page.list_serial)


@router.get("/shares", **described(SharesView))
def get_all_shares(request: Request) -> Response:
    """Give who has how much of what: the whole tree of cohorts and queues."""
    ask = plain(request)
    return answer(shares.all_shares(ask.gateway))


@router.get(f"/queues/{NAME}/shares", **described(SharesView))
def get_shares(name: str, request: Request) -> Response:
    """Give the tree that a queue is in: weight, quota, use, share and entitlement of each node."""
    ask = plain(request)
    return answer(shares.queue_shares(ask.gateway, name))
