"""A route whose function takes the request and path parts only: nothing is there to be injected.

FastAPI resolves dependencies for each request even where a function has none, and hands functions
over to threads by a way that costs more than reading a submit; under many submits both show. The
OpenAPI document is made as for every other route.
"""

import asyncio
import contextvars
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import Response

THREADS = 64
"""Submits that wait for one commit together; more threads make larger groups."""
_threads = ThreadPoolExecutor(THREADS, thread_name_prefix="gateway-job-route")


class PlainRoute(APIRoute):
    """Calls a plain function in a thread with the request and its path parts."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Give the coroutine that answers a request."""

        async def call(request: Request) -> Response:
            work = partial(self.endpoint, request=request, **request.path_params)
            # Threads start with an empty context; what the request has bound for logging goes
            # along.
            context = contextvars.copy_context()
            loop = asyncio.get_running_loop()
            response: Response = await loop.run_in_executor(_threads, context.run, work)
            return response

        return call
