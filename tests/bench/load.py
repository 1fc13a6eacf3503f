"""The client: sends prepared bodies over a few kept connections and reports rates and waits.

Run as a process of its own (`python -m tests.bench.load`), so that the server's interpreter is not
shared; reads its orders as JSON from standard input. It speaks just enough HTTP/1.1 to be cheap.
"""

import asyncio
import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import uvloop

RUN_SECONDS = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came of one load: answers by status, seconds in all, single waits."""

    statuses: Mapping[str, int]
    seconds: float
    median_ms: float
    p99_ms: float
    last_body: str

    def rate(self, of_each: int = 1) -> float:
        """Give what was answered a second, `of_each` for each request."""
        return sum(self.statuses.values()) * of_each / self.seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """A load: each body is posted once, over this many connections."""

    port: int
    path: str
    bodies: Sequence[str]
    connections: int
    token: str = ""
    keys: Sequence[str] = ()
    """Idempotency key of each body; none when empty."""


def send(order: Order) -> Answer:
    """Run a load in a process of its own."""
    orders = {name: getattr(order, name) for name in Order.__slots__}
    done = subprocess.run(
        [sys.executable, "-m", "tests.bench.load"],
        input=json.dumps(orders),
        capture_output=True,
        text=True,
        check=True,
        timeout=RUN_SECONDS,
    )
    return Answer(**json.loads(done.stdout))


class _Line(asyncio.Protocol):
    """One connection: sends a request, waits for its whole answer, sends the next."""

    def __init__(self, load: "_Load") -> None:
        self._load = load
        self._buffer = bytearray()
        self._sent_at = 0.0
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._next()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        # The servers under test always send a length; chunks would end in an error here.
        head = bytes(self._buffer[:end]).lower()
        size = int(head.split(b"content-length:", 1)[1].split(b"\r\n", 1)[0])
        if len(self._buffer) < end + 4 + size:
            return
        self._load.take(head[9:12].decode(), self._sent_at, bytes(self._buffer[end + 4 :]))
        self._buffer.clear()
        self._next()

    def connection_lost(self, error: Exception | None) -> None:
        self._load.hang_up(error)

    def _next(self) -> None:
        request = self._load.next_request()
        if request is None:
            self._transport.close()
            return
        self._sent_at = time.perf_counter()
        self._transport.write(request)


class _Load:
    """All connections of one load."""

    def __init__(self, requests: list[bytes], connections: int) -> None:
        self._requests = iter(requests)
        self._open = connections
        self._waits: list[float] = []
        self._statuses: Counter[str] = Counter()
        self._last_body = b""
        self._errors: list[Exception] = []
        self.done = asyncio.Event()

    def next_request(self) -> bytes | None:
        return next(self._requests, None)

    def take(self, status: str, sent_at: float, body: bytes) -> None:
        self._waits.append(time.perf_counter() - sent_at)
        self._statuses[status] += 1
        self._last_body = body

    def hang_up(self, error: Exception | None) -> None:
        if error is not None:
            self._errors.append(error)
        # A server that hangs up early ends the load too, with fewer answers or an error.
        self._open -= 1
        if not self._open:
            self.done.set()

    def result(self, seconds: float) -> dict[str, Any]:
        if self._errors:
            raise self._errors[0]
        waits = sorted(self._waits)
        return {
            "statuses": dict(self._statuses),
            "seconds": seconds,
            "median_ms": waits[len(waits) // 2] * 1000,
            "p99_ms": waits[int(len(waits) * 0.99)] * 1000,
            "last_body": self._last_body.decode()[:2000],
        }


def _requests(orders: Mapping[str, Any]) -> list[bytes]:
    head = (
        f"POST {orders['path']} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        f"Authorization: Bearer {orders['token']}\r\nContent-Type: application/json\r\n"
    )
    keys = orders["keys"] or [""] * len(orders["bodies"])
    requests = []
    for body, key in zip(orders["bodies"], keys, strict=True):
        named = f"Idempotency-Key: {key}\r\n" if key else ""
        data = body.encode()
        requests.append(f"{head}{named}Content-Length: {len(data)}\r\n\r\n".encode() + data)
    return requests


async def _run(orders: Mapping[str, Any]) -> dict[str, Any]:
    # Every byte is ready before the clock starts, so that the client is not what is measured.
    load = _Load(_requests(orders), orders["connections"])
    loop = asyncio.get_running_loop()
    started = time.perf_counter()
    for _ in range(orders["connections"]):
        await loop.create_connection(lambda: _Line(load), "127.0.0.1", orders["port"])
    await load.done.wait()
    return load.result(time.perf_counter() - started)


if __name__ == "__main__":
    print(json.dumps(uvloop.run(_run(json.load(sys.stdin)))))
