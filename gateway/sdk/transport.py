"""Sends requests, tries again where that is safe, and raises the server's errors as its classes.

The one seam for tests: give `Client` a transport of httpx2 and nothing leaves the process.
"""

import json
import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

import httpx2
from pydantic import BaseModel, ValidationError

from gateway.errors import (
    GatewayError,
    GatewayUnreachable,
    InvalidInput,
    Overloaded,
    Unavailable,
)
from gateway.schemas.problems import error_of
from gateway.sdk.credentials import Credentials

Answer = TypeVar("Answer", bound=BaseModel)
API: Final = "/api/v1"
# Idempotent by RFC 9110, section 9.2.2. A PUT or DELETE with If-Match that arrives twice is refused
# the second time, which changes nothing.
SAFE_METHODS: Final = frozenset({"GET", "PUT", "DELETE"})
BUSY: Final = frozenset({429, 503})
"""Statuses that say: not done, come again."""
STREAM_SILENCE_SECONDS: Final = 60.0
"""A stream that is silent for longer is opened again; it may have been cut without a word."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Retries:
    """How often and how patiently to try again; `sleep` is replaced in tests."""

    attempts: int = 5
    first_seconds: float = 0.2
    longest_seconds: float = 5.0
    sleep: Callable[[float], None] = time.sleep

    def pause(self, attempt: int, retry_after: str | None = None) -> None:
        """Wait before the next attempt, at least as long as the server asked."""
        seconds = min(self.longest_seconds, self.first_seconds * 2**attempt)
        # Half of it at random, so that many clients do not come back at the same moment.
        seconds *= random.uniform(0.5, 1.0)  # noqa: S311 - no secret
        # RFC 9110 (10.2.3) allows a date too; the gateway sends seconds, and a date by some
        # proxy is not worth trusting two clocks. A minute is the most that is obeyed.
        if retry_after and retry_after.isascii() and retry_after.isdigit():
            seconds = max(seconds, min(float(retry_after), 60.0))
        self.sleep(seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One request below /api/v1; repeatable when sending it twice does no harm."""

    method: str
    path: str
    params: Mapping[str, Any] = field(default_factory=dict)
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    is_repeatable: bool = False

    @property
    def may_repeat(self) -> bool:
        """Whether a lost answer may be asked for again."""
        return self.is_repeatable or self.method in SAFE_METHODS


class Wire:
    """A connection to one gateway."""

    def __init__(
        self,
        credentials: Credentials,
        *,
        timeout_seconds: float = 30.0,
        transport: httpx2.BaseTransport | None = None,
        retries: Retries | None = None,
    ) -> None:
        """Open lazily; nothing is sent yet."""
        self.credentials = credentials
        self._retries = retries or Retries()
        self._http = httpx2.Client(
            base_url=credentials.url,
            timeout=timeout_seconds,
            transport=transport,
            # A proxy from the environment cannot reach this machine's loopback.
            trust_env=not credentials.is_loopback,
            headers={"User-Agent": "training-gateway-sdk"},
        )

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def send(self, call: Call) -> httpx2.Response:
        """Send a request and give its successful answer.

        Raises:
            GatewayUnreachable: no answer after every attempt.
            GatewayError: what the server refused, as its own class.
        """
        for attempt in range(self._retries.attempts):
            is_last = attempt + 1 == self._retries.attempts
            try:
                response = self._http.send(self._request(call))
            except httpx2.TransportError as error:
                # What never arrived is repeated whatever it does; a lost answer only if harmless.
                if is_last or not (call.may_repeat or _never_arrived(error)):
                    raise self._unreachable(error) from error
                self._retries.pause(attempt)
                continue
            if response.is_success:
                return response
            # Busy answers are repeated for every method: the gateway stores whole or not at all,
            # so at worst the second request is refused as a conflict with the first.
            if response.status_code not in BUSY or is_last:
                raise failure_of(response)
            self._retries.pause(attempt, response.headers.get("retry-after"))
        raise GatewayUnreachable("no attempt was made", hint="retries must allow at least one")

    @contextmanager
    def stream(self, call: Call) -> Iterator[httpx2.Response]:
        """Open a streaming answer; raises as `send` does, without trying again."""
        request = self._request(call)
        # The gateway says something every 15 seconds on a stream of events; lines of a silent rank
        # may take longer than one request's timeout, so a stream has a patience of its own.
        request.extensions["timeout"]["read"] = STREAM_SILENCE_SECONDS
        try:
            response = self._http.send(request, stream=True)
            try:
                if not response.is_success:
                    # A streamed body is not read yet, and the problem document is in it.
                    response.read()
                    raise failure_of(response)
                yield response
            finally:
                response.close()
        except httpx2.TransportError as error:
            raise self._unreachable(error) from error

    def pause(self, attempt: int) -> None:
        """Wait before a stream is opened again."""
        self._retries.pause(attempt)

    def _request(self, call: Call) -> httpx2.Request:
        for name, value in call.headers.items():
            _require_sendable(name, value)
        headers = {"Authorization": f"Bearer {self.credentials.token()}", **call.headers}
        content: bytes | None = None
        if call.body is not None:
            headers.setdefault("Content-Type", "application/json")
            content = _encoded(call.body)
        # None would be sent as an empty value, which the gateway refuses for numbers.
        shown = {key: value for key, value in call.params.items() if value is not None}
        return self._http.build_request(
            call.method, API + call.path, params=shown, headers=headers, content=content
        )

    def _unreachable(self, error: httpx2.TransportError) -> GatewayUnreachable:
        return GatewayUnreachable(
            f"no answer from {self.credentials.url}: {error or type(error).__name__}",
            hint="is it running? start one with: gateway dev, or check TRAINING_GATEWAY_URL",
        )


def _require_sendable(name: str, value: str) -> None:
    """Refuse what a header cannot carry; left to the HTTP client it would look like a lost line."""
    if value.isascii() and value.isprintable() and value == value.strip():
        return
    raise InvalidInput(
        f"{name} holds a character that no header can carry",
        pointer=f"/headers/{name.lower()}",
        value=value,
        hint="use letters, digits and dashes",
    )


def _encoded(body: Any) -> bytes:
    try:
        # NaN and Infinity are Python's own extension of JSON (RFC 8259, section 6, has neither).
        return json.dumps(body, allow_nan=False, separators=(",", ":")).encode()
    except (TypeError, ValueError) as error:
        raise InvalidInput(
            f"this cannot be sent as JSON: {error}",
            hint="give text, whole or finite numbers, booleans, lists and mappings only",
        ) from error


def failure_of(response: httpx2.Response) -> GatewayError:
    """Give the error that an answer carries."""
    try:
        document = response.json()
    except ValueError:
        document = None
    # A proxy's error page, or some other service on this port, may be JSON too.
    if isinstance(document, dict) and "code" in document:
        return error_of(document, response.status_code)
    busy = {429: Overloaded, 503: Unavailable}.get(response.status_code, GatewayError)
    return busy(
        f"{response.request.url.host} answered {response.status_code} without a problem document",
        hint="is something else than a gateway at this address?",
    )


def read_answer(model: type[Answer], content: str | bytes) -> Answer:
    """Give the model in a successful answer; raises GatewayError when it holds something else."""
    try:
        # A newer server may say more, also in what admins write strictly.
        return model.model_validate_json(content, extra="ignore")
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = "/".join(["", *map(str, first["loc"])])
        raise GatewayError(
            f"the answer is not a {model.__name__} of this release: {place}: {first['msg']}",
            hint="upgrade training-gateway, or check that a gateway is at this address",
        ) from error


def _never_arrived(error: httpx2.TransportError) -> bool:
    """Whether the request surely was not received."""
    # ReadError and WriteError are not here: bytes had gone out when they happened.
    return isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.PoolTimeout)


def is_transient(error: GatewayError) -> bool:
    """Whether waiting may help: unreachable, busy, or without a database for a moment."""
    return isinstance(error, GatewayUnreachable | Unavailable | Overloaded)
