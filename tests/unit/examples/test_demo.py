"""The demonstration's own steps: finding its server, waiting for a decision, its manifests."""

import json
from pathlib import Path
from subprocess import Popen
from typing import Any, cast

import pytest

from gateway.examples import demo
from gateway.sdk import JobHandle


class Server:
    """A server's process that runs, or ended with this code."""

    def __init__(self, code: int | None = None) -> None:
        self.code = code

    def poll(self) -> int | None:
        """Give the exit code once it has ended."""
        return self.code


class Job:
    """A job that goes through these states, one a look."""

    def __init__(self, *states: str, reason: str = "") -> None:
        self.states = list(states)
        self.reason = reason
        self.looks = 0

    @property
    def state(self) -> str:
        """Give the state of the last look."""
        return self.states[min(self.looks, len(self.states)) - 1]

    def refresh(self) -> "Job":
        """Look again."""
        self.looks += 1
        return self


def server(code: int | None = None) -> "Popen[bytes]":
    return cast("Popen[bytes]", Server(code))


def test_a_server_is_found_by_what_it_wrote(tmp_path: Path) -> None:
    file = tmp_path / "context.json"
    file.write_text(json.dumps({"url": "http://127.0.0.1:1", "token": "t", "pid": 3}))

    assert demo.read_context(file, server()) == ("http://127.0.0.1:1", "t")


@pytest.mark.parametrize("code", [0, 1, -9])
def test_a_server_that_ended_is_not_waited_for(tmp_path: Path, code: int) -> None:
    with pytest.raises(SystemExit, match="did not start; its log is above"):
        demo.read_context(tmp_path / "context.json", server(code))


@pytest.mark.parametrize(
    "jobs",
    [
        [Job("running"), Job("running"), Job("pending", reason="no_room")],
        [Job("pending", "running"), Job("running"), Job("pending", reason="no_room")],
        [Job("launching", "running"), Job("pending", "running"), Job("held", reason="quota")],
    ],
)
def test_the_demonstration_goes_on_once_two_run_and_the_third_says_why_not(jobs: list[Any]) -> None:
    demo.wait_until_decided(cast("list[JobHandle]", jobs))

    assert [job.state for job in jobs[:2]] == ["running", "running"]
    assert len({job.looks for job in jobs}) == 1, "every look is at all three"


@pytest.mark.parametrize("name", demo.MANIFESTS)
def test_each_manifest_of_the_demonstration_exists(name: str) -> None:
    assert demo.manifest(name).is_file()
    assert demo.manifest(name).parent.name == "digits"


def test_every_program_that_is_named_next_is_one_that_make_prepares() -> None:
    commands = [line.split()[0] for line in demo.NEXT_STEPS.splitlines()[1:]]

    assert commands == ["make", ".venv/bin/gateway", ".venv/bin/gateway", ".venv/bin/gateway"]
