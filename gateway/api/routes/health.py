"""For probes and scrapers: alive, ready, figures."""

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from gateway.api.answers import answer
from gateway.api.dependencies import ask_of
from gateway.api.openapi import described
from gateway.schemas.views import Health
from gateway.service.health import readiness

router = APIRouter(tags=["gateway"])


@router.get("/healthz", **described(Health))
async def healthz() -> Response:
    """Say that the process answers; a coroutine, so that busy threads do not make it look dead."""
    # No look at the database: a liveness probe that fails while it is away makes the kubelet
    # restart every replica, which helps nobody. That is what readyz is for.
    return answer(Health(status="ok"))


@router.get("/readyz", **described(Health))
def readyz(request: Request) -> Response:
    """Say whether work can be done, and what is missing; 503 when not."""
    health = readiness(ask_of(request).gateway)
    # A Service sends nothing to a pod that is not ready; the body says why to whoever looks.
    return answer(health, status=200 if health.status == "ok" else 503)


@router.get("/metrics", **described("text/plain"))
def metrics(request: Request) -> Response:
    """Give figures for Prometheus."""
    accept = ask_of(request).headers.get("accept", "")
    # Prometheus asks for OpenMetrics and takes the older text form as well; the header decides.
    body, media_type = request.app.state.metrics.render(accept)
    return Response(body, media_type=media_type)
