"""The caller as the gateway sees it."""

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from gateway.api.answers import answer
from gateway.api.dependencies import plain
from gateway.api.openapi import described
from gateway.schemas.views import WhoAmI

router = APIRouter(tags=["gateway"])


@router.get("/whoami", **described(WhoAmI))
def whoami(request: Request) -> Response:
    """Give name, role and namespaces of the token's owner."""
    caller = plain(request).caller
    return answer(WhoAmI(name=caller.name, role=caller.role, namespaces=caller.namespaces))
