"""The door: request id, who calls, and the whole body within its limit, before any route runs.

A coroutine because ASGI hands over bodies only to coroutines. It authenticates before it reads, so
a stranger cannot make the server hold a body, and it counts chunked bodies as they come.
"""

import re
import secrets

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway.api.cursors import Cursors
from gateway.api.dependencies import ASK, Ask
from gateway.api.intake_ids import REQUEST_ID
from gateway.api.problems import problem_response
from gateway.api.tokens import Authenticator
from gateway.errors import BodyTooLarge, GatewayError, Unauthenticated, UnsupportedMediaType
from gateway.service.context import Caller, Gateway

MAX_BODY_BYTES = 256 * 1024
MAX_BATCH_BYTES = 8 * 1024 * 1024
MAX_DRAIN_BYTES = 16 * 1024 * 1024
"""How much of a refused body is read and dropped, so that its sender hears the answer."""
BATCH_PATH = "/api/v1/jobs:batch"
OPEN_PATHS = frozenset({"/healthz", "/readyz", "/api/v1/healthz", "/api/v1/readyz"})
"""What a probe may ask without a token."""
_WELL_FORMED_ID = re.compile(r"[A-Za-z0-9._-]{8,64}")
_NOBODY = Caller(name="anonymous")


class Intake:
    """ASGI middleware that puts an `Ask` into the scope, or answers with a problem."""

    def __init__(
        self, app: ASGIApp, gateway: Gateway, authenticator: Authenticator, cursors: Cursors
    ) -> None:
        """Stand before this application."""
        self._app = app
        self._gateway = gateway
        self._authenticator = authenticator
        self._cursors = cursors

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let one request in."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        request_id = _request_id(headers)
        scope[REQUEST_ID] = request_id
        try:
            caller = self._identify(scope["path"], headers)
            body = await _read_body(scope["path"], headers, receive)
        except GatewayError as error:
            refusal = problem_response(error, request_id)
            # What is left of the body is not wanted, and may have no end.
            refusal.headers["Connection"] = "close"
            await refusal(scope, receive, send)
            return
        except ClientDisconnect:
            return
        scope[ASK] = Ask(
            gateway=self._gateway,
            caller=caller,
            cursors=self._cursors,
            request_id=request_id,
            path=scope["path"],
            query_string=scope["query_string"],
            headers=headers,
            body=body,
        )
        await self._app(scope, receive, _naming(send, request_id))

    def _identify(self, path: str, headers: Headers) -> Caller:
        if path in OPEN_PATHS:
            return _NOBODY
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            raise Unauthenticated(
                "a bearer token is needed",
                hint="send Authorization: Bearer TOKEN, or set TRAINING_GATEWAY_TOKEN",
            )
        return self._authenticator.authenticate(token.strip())


def _request_id(headers: Headers) -> str:
    """Take the client's id when it is harmless in logs, else make one."""
    given = headers.get("x-request-id", "")
    return given if _WELL_FORMED_ID.fullmatch(given) else secrets.token_hex(8)


def _naming(send: Send, request_id: str) -> Send:
    """Add the request id to the answer's head."""

    async def named(message: Message) -> None:
        if message["type"] == "http.response.start":
            MutableHeaders(scope=message).setdefault("X-Request-ID", request_id)
        await send(message)

    return named


async def _read_body(path: str, headers: Headers, receive: Receive) -> bytes:
    """Read the whole body.

    Raises:
        BodyTooLarge: longer than this path allows, announced or not.
        UnsupportedMediaType: compressed; a small bomb would pass the limit.
    """
    if headers.get("content-encoding", "identity") != "identity":
        raise UnsupportedMediaType(
            "compressed bodies are not read",
            pointer="/headers/content-encoding",
            hint="send the body as it is",
        )
    limit = MAX_BATCH_BYTES if path == BATCH_PATH else MAX_BODY_BYTES
    chunks: list[bytes] = []
    size, has_more = 0, True
    while has_more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        chunk, has_more = message.get("body", b""), message.get("more_body", False)
        size += len(chunk)
        if size <= limit:
            chunks.append(chunk)
        elif size > MAX_DRAIN_BYTES:
            break
    if size <= limit:
        return b"".join(chunks)
    # What came beyond the limit was read and dropped, so that the sender hears this answer.
    raise BodyTooLarge(
        f"the body is longer than {limit} bytes",
        allowed=(f"at most {limit} bytes",),
        hint="send fewer jobs" if path == BATCH_PATH else "move large data out of the manifest",
    )
