"""Routes of the public surface whose behaviour is not built yet: refused by name, never ignored."""

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from gateway.api.identifiers import DEVICE, JOB, NAME
from gateway.errors import NotSupportedYet

router = APIRouter(tags=["not built yet"], include_in_schema=False)
# OPTIONS and HEAD too: routing would answer them with 405 and no method at all that is right.
EVERY = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
ROUTES: tuple[tuple[str, tuple[str, ...]], ...] = (
    (f"/jobs/{JOB}:preempt", EVERY),
    ("/budgets", EVERY),
    (f"/budgets/{NAME}", EVERY),
    ("/reservations", EVERY),
    (f"/reservations/{NAME}", EVERY),
    (f"/queues/{NAME}:drain", EVERY),
    (f"/nodes/{NAME}:drain", EVERY),
    ("/devices", ("POST",)),
    (f"/devices/{DEVICE}", ("PUT", "DELETE")),
    (f"/devices/{DEVICE}:cordon", EVERY),
    (f"/devices/{DEVICE}:uncordon", EVERY),
    ("/usage", EVERY),
    ("/history", EVERY),
    ("/audit", EVERY),
)


def refuse(request: Request) -> Response:
    """Say that this is planned and not built."""
    path = request.scope["path"]
    raise NotSupportedYet(
        f"{request.method} {path} is not supported yet",
        pointer=path,
        hint="the changelog says what each release brings",
    )


# Out of the OpenAPI document, or generated clients would offer what always fails.
for path, methods in ROUTES:
    router.add_api_route(path, refuse, methods=list(methods), response_class=Response)
