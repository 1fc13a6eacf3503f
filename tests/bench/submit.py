"""Durable submits a second through HTTP: one by one and in batches, on both databases.

Beside each figure stands a yardstick of the same repetition: single submits beside a bare FastAPI
echo of the same body with the same client and connections, batches beside executemany or COPY of
the same rows. The jobs go to a gateway that works: it admits what fits and explains what waits.
"""

import itertools
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from gateway.db.migrations import upgrade
from tests.bench._bodies import batch_body, single_body
from tests.bench._bulk_peers import peer_rate
from tests.bench.figures import Figure, median_figure
from tests.bench.load import Answer, Order, send
from tests.bench.servers import Running, running_echo, running_gateway
from tests.postgresql import running

REPETITIONS = 5
SINGLES = 1_000
CONNECTIONS = 64
BATCHES = 4
BATCH_SIZE = 500
SINGLE_TARGET, BULK_TARGET = 0.6, 0.3
ECHO_SOURCE = "same run: FastAPI, one plain function with a pydantic body, same body and client"
BULK_SOURCE = {
    "sqlite": "same run: sqlite3 executemany of the same rows, jobs and events, full sync",
    "postgresql": "same run: psycopg COPY of the same rows, jobs and events, fsync on",
}
BULK_PEER = {"sqlite": "executemany", "postgresql": "COPY"}
_numbers = itertools.count()


def run() -> Iterator[Figure]:
    """Give the figures of both databases."""
    with running_echo() as echo:
        for kind in ("sqlite", "postgresql"):
            yield from _figures(kind, echo)


def _figures(kind: str, echo: Running) -> Iterator[Figure]:
    samples: dict[str, list[float]] = {"single": [], "echo": [], "bulk": [], "peer": []}
    with (
        _databases(kind) as (url, new_url),
        tempfile.TemporaryDirectory() as folder,
        running_gateway(url, Path(folder)) as gateway,
    ):
        _singles(gateway, "/api/v1/jobs", 100)  # both are warm before anything counts
        _singles(echo, "/echo", 100)
        for _ in range(REPETITIONS):
            samples["echo"].append(_singles(echo, "/echo", SINGLES))
            samples["single"].append(_singles(gateway, "/api/v1/jobs", SINGLES))
        # In turn, so that whatever else the machine does slows both.
        for _ in range(REPETITIONS):
            samples["peer"].append(peer_rate(new_url(), BATCHES, BATCH_SIZE))
            samples["bulk"].append(_batches(gateway))
    single, echoed, bulk, peer = samples.values()
    yield from _pair(
        f"submit.single_{kind}", single, echoed, (SINGLE_TARGET, "FastAPI echo", ECHO_SOURCE)
    )
    yield from _pair(
        f"submit.bulk_{kind}", bulk, peer, (BULK_TARGET, BULK_PEER[kind], BULK_SOURCE[kind])
    )


def _pair(
    name: str, ours: list[float], peers: list[float], told: tuple[float, str, str]
) -> Iterator[Figure]:
    """Give a rate, and its ratio to the yardstick, repetition by repetition."""
    target, peer, source = told
    beside = median_figure("peer", peers, "jobs/s").value
    yield median_figure(name, ours, "jobs/s", peer=peer, peer_value=beside, peer_source=source)
    ratios = [our / other for our, other in zip(ours, peers, strict=True)]
    yield median_figure(
        f"{name}_ratio", ratios, "1", target=target, peer=peer, peer_value=1.0, peer_source=source
    )


def _singles(server: Running, path: str, count: int) -> float:
    names = [f"single-{next(_numbers)}" for _ in range(count)]
    order = Order(
        port=server.port,
        path=path,
        bodies=[single_body(name) for name in names],
        keys=names,
        connections=CONNECTIONS,
        token=server.token,
    )
    return _checked(send(order), {"200", "201"}).rate()


def _batches(server: Running) -> float:
    # Names are new in each repetition: a live one may not be taken twice.
    bodies = [
        batch_body([f"bulk-{next(_numbers)}" for _ in range(BATCH_SIZE)]) for _ in range(BATCHES)
    ]
    order = Order(
        port=server.port,
        path="/api/v1/jobs:batch",
        bodies=bodies,
        # One batch can be read while the disk syncs the other.
        connections=2,
        token=server.token,
    )
    return _checked(send(order), {"200"}).rate(BATCH_SIZE)


def _checked(answer: Answer, allowed: set[str]) -> Answer:
    if set(answer.statuses) <= allowed and '"error":{' not in answer.last_body:
        return answer
    raise RuntimeError(f"answers {dict(answer.statuses)}: {answer.last_body[:500]}")


@contextmanager
def _databases(kind: str) -> Iterator[tuple[str, Callable[[], str]]]:
    """Give the gateway's database and a maker of migrated ones for the yardstick, on one disk."""
    if kind == "sqlite":
        with tempfile.TemporaryDirectory() as folder:
            yield (
                f"sqlite:///{folder}/gateway.db",
                lambda: _migrated(f"sqlite:///{folder}/peer-{next(_numbers)}.db"),
            )
        return
    with running(settings=()) as server:
        yield server.url_of(server.create()), lambda: _migrated(server.url_of(server.create()))


def _migrated(url: str) -> str:
    upgrade(url)
    return url
