"""A route whose function takes the request and path parts only: nothing is there to be injected.

FastAPI resolves dependencies for each request even where a function has none; under many submits
that is a good part of an answer's cost. The OpenAPI document is made as for every other route.
"""

from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from fastapi.concurrency import run_in_threadpool
from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import Response


class PlainRoute(APIRoute):
    """Calls a plain function in a thread with the request and the text of its path parts."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Give the coroutine that answers a request."""

        async def call(request: Request) -> Response:
            work = partial(self.endpoint, request=request, **request.path_params)
            response: Response = await run_in_threadpool(work)
            return response

        return call
