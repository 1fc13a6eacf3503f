"""A gateway made of prepared answers, behind the transport seam of the SDK."""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import httpx2

from gateway.sdk.credentials import Credentials
from gateway.sdk.transport import Retries, Wire

NOW = datetime(2026, 1, 1, tzinfo=UTC).isoformat()
Answer = httpx2.Response | Exception | Callable[[httpx2.Request], httpx2.Response]


def a_job(state: str = "pending", **changes: Any) -> dict[str, Any]:
    """Give a job as the server answers it."""
    values = {
        "id": "11111111-2222-3333-4444-555555555555",
        "name": "train",
        "namespace": "team-a",
        "queue": "default",
        "user": "anna",
        "priority": 0,
        "state": state,
        "attempt": 0 if state in {"pending", "held"} else 1,
        "pods": 1,
        "gpus": 8,
        "rdma": 8,
        "submitted_at": NOW,
        "version": 1,
        "spec": {},
    }
    return {**values, **changes}


def ok(body: Any, status: int = 200) -> httpx2.Response:
    """Give a JSON answer."""
    return httpx2.Response(status, content=json.dumps(body).encode())


def text(*lines: str) -> httpx2.Response:
    """Give lines of text."""
    return httpx2.Response(200, content="".join(f"{line}\n" for line in lines).encode())


def problem(status: int, code: str, **changes: Any) -> httpx2.Response:
    """Give a problem document."""
    document = {"status": status, "code": code, "detail": f"{code} it is", **changes}
    headers = {"Retry-After": "7"} if status in {429, 503} else {}
    return httpx2.Response(status, content=json.dumps(document).encode(), headers=headers)


class BrokenStream(httpx2.SyncByteStream):
    """Gives some lines, then the connection breaks."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._lines = tuple(lines)

    def __iter__(self) -> Any:
        yield from ((line + "\n").encode() for line in self._lines)
        raise httpx2.ReadError("cut")


def cut_after(*lines: str) -> httpx2.Response:
    """Give lines, then a broken connection."""
    return httpx2.Response(200, stream=BrokenStream(lines))


@dataclass
class FakeGateway:
    """Answers requests in the order prepared, and remembers them."""

    answers: list[Answer]
    seen: list[httpx2.Request] = field(default_factory=list)
    paused: list[float] = field(default_factory=list)

    def transport(self) -> httpx2.MockTransport:
        """Give the transport for a client."""
        return httpx2.MockTransport(self._answer)

    def wire(self, attempts: int = 3) -> Wire:
        """Give a connection that never sleeps."""
        retries = Retries(attempts=attempts, sleep=self.paused.append)
        credentials = Credentials(url="http://127.0.0.1:1", _token="secret")
        return Wire(credentials, transport=self.transport(), retries=retries)

    def _answer(self, request: httpx2.Request) -> httpx2.Response:
        self.seen.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, httpx2.Response) else answer(request)
