"""Runs one command against prepared answers: no server, no socket, no waiting."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx2
import pytest

from gateway.cli.app import run
from gateway.cli.session import SESSION
from gateway.sdk import Client
from tests.unit.sdk.fake_gateway import Answer, FakeGateway


@dataclass(slots=True)
class Ran:
    """What a command gave, and what it asked for."""

    code: int
    out: str
    err: str
    seen: list[httpx2.Request] = field(default_factory=list)

    @property
    def asked(self) -> list[str]:
        """Method and address of each request, below /api/v1."""
        return [
            f"{request.method} {str(request.url.raw_path, 'ascii').removeprefix('/api/v1')}"
            for request in self.seen
        ]

    @property
    def bodies(self) -> list[Any]:
        """The JSON body of each request that had one."""
        return [json.loads(request.content) for request in self.seen if request.content]


@dataclass(slots=True)
class Terminal:
    """Runs commands and catches what they print."""

    capsys: pytest.CaptureFixture[str]

    def __call__(self, *arguments: str, answers: tuple[Answer, ...] = ()) -> Ran:
        """Run one command; each request gets the next answer."""
        fake = FakeGateway(list(answers))
        client = Client("http://127.0.0.1:1", "secret", transport=fake.transport())
        SESSION.opened = client
        self.capsys.readouterr()
        code = run(list(arguments))
        captured = self.capsys.readouterr()
        assert client._wire._http.is_closed, "the client was left open"
        return Ran(code, captured.out, captured.err, fake.seen)


@pytest.fixture
def terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Terminal]:
    """Give a wide terminal without colours and without any gateway in the environment."""
    for name in ("URL", "TOKEN", "TOKEN_FILE"):
        monkeypatch.delenv(f"TRAINING_GATEWAY_{name}", raising=False)
    monkeypatch.setenv("COLUMNS", "240")
    monkeypatch.setenv("NO_COLOR", "1")
    yield Terminal(capsys)
    SESSION.close()
