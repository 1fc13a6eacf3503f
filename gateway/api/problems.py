"""Errors become problem details here, and only here; each carries the request id.

The status of a code stands with its class in `gateway.errors`. Two depend on the request: a failed
If-Match is 412 instead of 409, and what HTTP itself refuses (405, 404) gets our codes.
"""

import json
import logging
import re
from collections.abc import Iterable

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from gateway.api.intake_ids import request_id_of
from gateway.errors import (
    GatewayError,
    MethodNotAllowed,
    NotFound,
    Overloaded,
    StaleVersion,
    Unauthenticated,
    Unavailable,
)
from gateway.schemas.problems import problem_of

MEDIA_TYPE = "application/problem+json"
RETRY_AFTER_SECONDS = "1"
log = logging.getLogger(__name__)


def problem_response(error: GatewayError, request_id: str, status: int = 0) -> Response:
    """Give the answer for an error."""
    document = problem_of(error, request_id)
    document["status"] = status or error.status
    # A refusal must not outlive its cause in some cache: 404 and 405 may be cached by default
    # (RFC 9110, section 15.1).
    headers = {"X-Request-ID": request_id, "Cache-Control": "no-store"}
    # RFC 9110, section 11.6.1: a 401 without a challenge is not complete, and clients may ignore
    # it.
    if isinstance(error, Unauthenticated):
        headers["WWW-Authenticate"] = 'Bearer realm="training-gateway"'
    if isinstance(error, Overloaded | Unavailable):
        headers["Retry-After"] = RETRY_AFTER_SECONDS
    return Response(
        # What was submitted is shown back, and may hold half a surrogate pair.
        json.dumps(document, ensure_ascii=False).encode(errors="replace"),
        status_code=document["status"],
        headers=headers,
        media_type=MEDIA_TYPE,
    )


def register(app: FastAPI) -> None:
    """Let every error of this application answer as a problem."""

    @app.exception_handler(GatewayError)
    def known(request: Request, error: GatewayError) -> Response:
        # RFC 9110, section 13.1.1, wants 412 for a failed If-Match. Without that header somebody
        # was faster inside the gateway, which is a conflict.
        is_condition = isinstance(error, StaleVersion) and "if-match" in request.headers
        return problem_response(error, request_id_of(request.scope), 412 if is_condition else 0)

    @app.exception_handler(HTTPException)
    def refused(request: Request, error: HTTPException) -> Response:
        return _http_refusal(app, request, error)

    @app.exception_handler(Exception)
    def unknown(request: Request, error: Exception) -> Response:
        request_id = request_id_of(request.scope)
        # The name alone: a driver's message may quote values of a job. The traceback goes to the
        # server's own log, where Starlette raises the error again after this answer.
        log.error("request %s failed with %s", request_id, type(error).__name__)
        told = GatewayError(
            "the gateway failed to answer; this is a defect of its own",
            hint=f"look for request {request_id} in the server's log",
        )
        return problem_response(told, request_id)


def _http_refusal(app: FastAPI, request: Request, error: HTTPException) -> Response:
    request_id = request_id_of(request.scope)
    path = request.scope["path"]
    if error.status_code != 405:  # noqa: PLR2004 - the only other one that routing raises is 404
        told: GatewayError = NotFound(
            f"nothing is at {path[:200]}", hint="the routes are listed in /api/v1/openapi.json"
        )
        return problem_response(told, request_id)
    # What the document does not describe (itself, for one) has its methods from routing alone.
    methods = methods_of(app, path) or _routed_methods(error)
    told = MethodNotAllowed(
        f"{request.method} is not possible at {path[:200]}",
        value=request.method,
        allowed=methods,
        hint=f"use {' or '.join(methods)}",
    )
    response = problem_response(told, request_id)
    response.headers["Allow"] = ", ".join(methods)
    return response


def _routed_methods(error: HTTPException) -> tuple[str, ...]:
    allowed = (error.headers or {}).get("Allow", "")
    return tuple(sorted(name.strip() for name in allowed.split(",") if name.strip()))


def methods_of(app: FastAPI, path: str) -> tuple[str, ...]:
    """Give every method that a path takes; routing alone names only those of one route."""
    found: set[str] = set()
    for template, operations in app.openapi()["paths"].items():
        if _pattern(template).fullmatch(path):
            found |= {name.upper() for name in _operations(operations)}
    return tuple(sorted(found))


def _pattern(template: str) -> re.Pattern[str]:
    parts = re.split(r"\{[^}]+\}", template)
    return re.compile("[^/:]+".join(re.escape(part) for part in parts))


def _operations(names: Iterable[str]) -> set[str]:
    return set(names) & {"get", "put", "post", "delete", "patch"}
