"""Devices, and who holds them."""

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from gateway.api.answers import answer
from gateway.api.dependencies import PageQuery, plain, with_query
from gateway.api.identifiers import DEVICE
from gateway.api.openapi import described
from gateway.core.vocabulary import DeviceKind
from gateway.errors import NotFound
from gateway.schemas.views import DeviceHistoryPage, DevicePage, DeviceView
from gateway.service import devices as service
from gateway.service.device_history import device_history

router = APIRouter(tags=["devices"])
# So many digits always fit into the 64 bits of the column; a longer number is no device anyway.
LONGEST_ID = 18


class DevicesQuery(PageQuery):
    """Which devices to list; what is left out does not filter."""

    node: str = ""
    kind: DeviceKind | None = None
    free: bool | None = None


@router.get("/devices", **described(DevicePage, query=DevicesQuery))
def list_devices(request: Request) -> Response:
    """List devices by node, kind and ordinal."""
    ask, query = with_query(request, DevicesQuery)
    wanted = service.DeviceFilter(node=query.node, kind=query.kind, free=query.free)
    page = service.list_devices(
        ask.gateway, ask.caller, wanted, ask.open_cursor(query), query.limit
    )
    return answer(page.model_copy(update={"next_cursor": ask.seal_cursor(page.next_cursor, query)}))


@router.get(f"/devices/{DEVICE}", **described(DeviceView))
def get_device(device_id: str, request: Request) -> Response:
    """Give one device."""
    ask = plain(request)
    device = service.get_device(ask.gateway, ask.caller, _number(device_id))
    return answer(device, version=device.version)


@router.get(f"/devices/{DEVICE}/history", **described(DeviceHistoryPage, query=PageQuery))
def get_device_history(device_id: str, request: Request) -> Response:
    """Give who held one device, the newest first."""
    ask, query = with_query(request, PageQuery)
    page = device_history(
        ask.gateway, ask.caller, _number(device_id), ask.open_cursor(query), query.limit
    )
    return answer(page.model_copy(update={"next_cursor": ask.seal_cursor(page.next_cursor, query)}))


def _number(device_id: str) -> int:
    # Text in the path and not `int`: FastAPI's own conversion would answer in its own form of
    # error, and take "1_0" and "٣" for numbers.
    if not (device_id.isascii() and device_id.isdigit() and len(device_id) <= LONGEST_ID):
        raise NotFound(
            f"device {device_id[:64]!r} does not exist", hint="list devices: gateway device ls"
        )
    return int(device_id)
