"""A real server for acceptance tests: the application on uvicorn, a virtual cluster behind it."""

import shutil
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import pytest
import uvicorn

from gateway.api.app import create_app
from gateway.api.tokens import StaticTokens
from gateway.db.engine import open_database
from gateway.sdk import Client
from tests.service_world import ADMIN, ANNA, BEN, World, a_world

TOKENS = {"root": ADMIN, "anna": ANNA, "ben": BEN}
"""Each caller's token is their name."""
START_SECONDS = 10.0
TURN_SECONDS = 0.01


@dataclass(slots=True)
class Served:
    """A running server; `world` moves what stands behind it."""

    url: str
    world: World
    _clients: list[Any] = field(default_factory=list)

    def http(self, caller: str = "anna", **headers: str) -> httpx2.Client:
        """Give a plain HTTP client below /api/v1 with a caller's token."""
        client = httpx2.Client(
            base_url=f"{self.url}/api/v1",
            headers={"Authorization": f"Bearer {caller}", **headers},
            trust_env=False,
            timeout=20.0,
        )
        self._clients.append(client)
        return client

    def sdk(self, caller: str = "anna") -> Client:
        """Give an SDK client with a caller's token."""
        client = Client(self.url, caller, timeout=20.0)
        self._clients.append(client)
        return client

    @contextmanager
    def moving(self) -> Iterator[None]:
        """Let virtual time run by itself, a second a turn, while the test waits."""
        is_over = threading.Event()

        def move() -> None:
            while not is_over.wait(TURN_SECONDS):
                self.world.turn()

        thread = threading.Thread(target=move)
        thread.start()
        try:
            yield
        finally:
            is_over.set()
            thread.join()

    def close(self) -> None:
        """Close every client that was given out."""
        for client in self._clients:
            client.close()


@contextmanager
def serving(world: World) -> Iterator[Served]:
    """Run the application for a world on a free loopback port."""
    bound = socket.socket()
    bound.bind(("127.0.0.1", 0))
    tokens = StaticTokens(TOKENS.items())
    server = uvicorn.Server(
        uvicorn.Config(
            create_app(world.gateway, tokens),
            log_level="critical",
            timeout_graceful_shutdown=1,
        )
    )
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]})
    thread.start()
    served = Served(f"http://127.0.0.1:{bound.getsockname()[1]}", world)
    deadline = time.monotonic() + START_SECONDS
    try:
        while not server.started:
            assert time.monotonic() < deadline, "the server did not start"
            time.sleep(0.005)
        yield served
    finally:
        served.close()
        server.should_exit = True
        thread.join()
        bound.close()


@pytest.fixture
def served(sqlite_template: Path, tmp_path: Path) -> Iterator[Served]:
    """Give a server on SQLite with two nodes of eight GPUs and eight NICs."""
    with serving_copy(sqlite_template, tmp_path) as running:
        yield running


@pytest.fixture(scope="module")
def shared(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Give the same kind of server to all tests of a file that store nothing."""
    with serving_copy(sqlite_template, tmp_path_factory.mktemp("shared")) as running:
        yield running


@contextmanager
def serving_copy(template: Path, folder: Path) -> Iterator[Served]:
    """Run a server on a fresh copy of a migrated SQLite file."""
    path = folder / "gateway.db"
    shutil.copy(template, path)
    database = open_database(f"sqlite:///{path}")
    with serving(a_world(database)) as running:
        yield running
    database.close()
