"""Runs the command line in this process against the served gateway."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from gateway.cli.app import run
from tests.acceptance.conftest import Served


@dataclass(frozen=True, slots=True)
class Ran:
    """What a command gave."""

    code: int
    out: str
    err: str


Command = Callable[..., Ran]


@pytest.fixture
def gateway(
    served: Served, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Command:
    """Give a function that runs one command as anna, or as `caller`."""

    def command(*arguments: str, caller: str = "anna") -> Ran:
        monkeypatch.setenv("TRAINING_GATEWAY_URL", served.url)
        monkeypatch.setenv("TRAINING_GATEWAY_TOKEN", caller)
        monkeypatch.setenv("COLUMNS", "200")
        capsys.readouterr()
        code = run(list(arguments))
        captured = capsys.readouterr()
        return Ran(code, captured.out, captured.err)

    return command
