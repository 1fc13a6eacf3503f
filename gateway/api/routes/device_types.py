"""Known machine types: list, and look at one with its wiring."""

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from gateway.api.answers import answer, items
from gateway.api.dependencies import plain
from gateway.api.identifiers import NAME
from gateway.api.openapi import described
from gateway.schemas.device_types import DeviceTypeDetail, DeviceTypePage
from gateway.service import device_types as service

router = APIRouter(tags=["devices"])


@router.get("/device-types", **described(DeviceTypePage))
def list_device_types(request: Request) -> Response:
    """List known machine types, the built-in ones first."""
    # Only to refuse strangers and unknown parameters: what is built in is nobody's secret.
    plain(request)
    return items(service.list_device_types())


@router.get(f"/device-types/{NAME}", **described(DeviceTypeDetail))
def get_device_type(name: str, request: Request) -> Response:
    """Give one machine type with its places, distances and drawing."""
    plain(request)
    return answer(service.get_device_type(name))
