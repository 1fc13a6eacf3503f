"""Where the request id stands in an ASGI scope; apart, so that errors and intake both see it."""

from typing import cast

from starlette.types import Scope

REQUEST_ID = "training_gateway.request_id"


def request_id_of(scope: Scope) -> str:
    """Give the id of the request being answered."""
    return cast(str, scope.get(REQUEST_ID, ""))
