"""The open arrivals of Kueue's baseline: every (queue, class) submits at its own steady pace.

Run as a process of its own (`python -m tests.bench._arrivals`), so that the server's interpreter is
not shared; reads its orders as JSON from standard input. Each pair has one connection. A submit
that is late is sent at once and moves none of the later ones: arrivals wait for nobody.
"""

import asyncio
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple, cast

import uvloop

from tests.bench.decisions import BASELINE, Kind


class Pace(NamedTuple):
    """How a class arrives and how long it runs, in seconds."""

    name: str
    kind: Kind
    interval: float
    runs: float


BASELINE_PACES = tuple(
    Pace(name, kind, interval, runs)
    for (name, interval, runs), kind in zip(
        (("small", 0.1, 0.2), ("medium", 0.5, 0.5), ("large", 1.2, 1.0)),
        BASELINE.kinds,
        strict=True,
    )
)


class Line(NamedTuple):
    """One loop of arrivals: a body for each job, one every `interval` seconds."""

    interval: float
    requests: list[bytes]


def manifest(pace: Pace, queue: str, number: int) -> dict[str, Any]:
    """Give the PyTorchJob of one job: a single pod, with its course for the virtual cluster."""
    resources = {"cpu": str(pace.kind.cpu // 1_000)}
    container = {"name": "pytorch", "image": "busybox", "resources": {"requests": resources}}
    script = {"run-seconds": str(pace.runs), "start-seconds": "0"}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {
            "name": f"{pace.name}-{number}",
            "namespace": queue,
            "annotations": {
                f"simulated.training-gateway.io/{key}": value for key, value in script.items()
            },
        },
        "spec": {
            "pytorchReplicaSpecs": {
                "Master": {"replicas": 1, "template": {"spec": {"containers": [container]}}}
            }
        },
    }


def lines_of(orders: Mapping[str, Any]) -> Iterator[Line]:
    """Give a loop for each queue and class; `share` below 1 sends only the first of each."""
    head = (
        f"POST /api/v1/jobs HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        f"Authorization: Bearer {orders['token']}\r\nContent-Type: application/json\r\n"
    )
    for queue in orders["queues"]:
        for pace in BASELINE_PACES:
            overrides = {"queue": queue, "priority": pace.kind.priority}
            count = round(pace.kind.jobs * orders["share"])
            requests = [
                _request(head, {"manifest": manifest(pace, queue, n), "overrides": overrides})
                for n in range(count)
            ]
            yield Line(pace.interval, requests)


def _request(head: str, body: Mapping[str, Any]) -> bytes:
    data = json.dumps(body).encode()
    return f"{head}Content-Length: {len(data)}\r\n\r\n".encode() + data


class _Sender(asyncio.Protocol):
    """One connection, which sends its next request when it is due and the last was answered."""

    def __init__(self, line: Line, started: float, statuses: Counter[str]) -> None:
        self._requests = iter(line.requests)
        self._interval, self._due = line.interval, started
        self._statuses = statuses
        self._buffer = bytearray()
        self._transport: asyncio.Transport
        self.done = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._next()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        head = bytes(self._buffer[:end]).lower()
        size = int(head.split(b"content-length:", 1)[1].split(b"\r\n", 1)[0])
        if len(self._buffer) >= end + 4 + size:
            self._statuses[head[9:12].decode()] += 1
            self._buffer.clear()
            self._next()

    def connection_lost(self, _error: Exception | None) -> None:
        self.done.set()

    def _next(self) -> None:
        request = next(self._requests, None)
        if request is None:
            self._transport.close()
            return
        # The first comes one interval after the queue exists, as in Kueue's generator.
        self._due += self._interval
        loop = asyncio.get_running_loop()
        loop.call_at(max(self._due, loop.time()), self._transport.write, request)


def _itself(sender: _Sender) -> _Sender:
    return sender


async def _run(orders: Mapping[str, Any]) -> dict[str, Any]:
    lines, statuses = list(lines_of(orders)), Counter[str]()
    loop = asyncio.get_running_loop()
    started_at, started = time.time(), loop.time()
    senders = [_Sender(line, started, statuses) for line in lines]
    for sender in senders:
        await loop.create_connection(partial(_itself, sender), "127.0.0.1", orders["port"])
    await asyncio.gather(*(sender.done.wait() for sender in senders))
    return {"started_at": started_at, "statuses": dict(statuses), "ended_at": time.time()}


if __name__ == "__main__":
    print(json.dumps(uvloop.run(_run(json.load(sys.stdin)))))
