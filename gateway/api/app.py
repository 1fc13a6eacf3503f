"""Builds the HTTP application from a gateway and an authenticator."""

from importlib.metadata import PackageNotFoundError, version

from fastapi import FastAPI

from gateway.api import openapi, problems
from gateway.api.cursors import Cursors
from gateway.api.intake import OPEN_PATHS, Intake
from gateway.api.metrics import Metrics
from gateway.api.routes import all_routers, root_router
from gateway.api.tokens import Authenticator
from gateway.service.context import Gateway

PREFIX = "/api/v1"


def create_app(gateway: Gateway, authenticator: Authenticator) -> FastAPI:
    """Give the application that answers for this gateway, to callers that this one knows."""
    app = documented_app()
    app.state.metrics = Metrics(gateway)
    app.add_middleware(
        Intake,
        gateway=gateway,
        authenticator=authenticator,
        cursors=Cursors(gateway.settings.url),
    )
    return app


def documented_app() -> FastAPI:
    """Give the application without a gateway behind it: enough to describe its routes."""
    app = FastAPI(
        title=openapi.TITLE,
        summary="A batch gateway for Kubeflow training jobs",
        version=_version(),
        docs_url=None,  # the interactive pages load scripts from elsewhere
        redoc_url=None,
        openapi_url=f"{PREFIX}/openapi.json",
        # `/jobs/` is a slip to be told of; a redirect would make clients send each body twice.
        redirect_slashes=False,
    )
    for router in all_routers():
        app.include_router(router, prefix=PREFIX)
    # Kubernetes probes and Prometheus look for these at the root unless told otherwise.
    app.include_router(root_router())
    problems.register(app)
    openapi.install(app, OPEN_PATHS)
    return app


def _version() -> str:
    try:
        return version("training-gateway")
    except PackageNotFoundError:  # run from a checkout that was not installed
        return "0"
