"""`Client.local()`: a gateway of one's own, which ends with the program that started it."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gateway.errors import GatewayError, GatewayUnreachable
from gateway.sdk import Client
from gateway.sdk.local import LocalGateway
from gateway.sdk.transport import Call

PROGRAM = """
import sys, time
from gateway.sdk import Client
client = Client.local()
print(client._local._child.pid, flush=True)
time.sleep(600)
"""
END_SECONDS = 30


def is_alive(pid: int) -> bool:
    status = Path(f"/proc/{pid}/stat")
    return status.exists() and status.read_text().rsplit(") ", 1)[1][0] != "Z"


def test_a_gateway_of_ones_own_works_and_ends_with_its_client() -> None:
    with Client.local() as client:
        assert client.whoami().role == "admin"
        assert client.health().checks["database"] == "ok"
        assert [queue.name for queue in client.queues.list()] == ["default"]
        assert client._local is not None
        child = client._local._child
    assert child.poll() is not None
    with pytest.raises((GatewayUnreachable, RuntimeError)):
        client._wire.send(Call(method="GET", path="/whoami"))


def test_a_killed_program_leaves_no_gateway_behind() -> None:
    parent = subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    assert is_alive(child)
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    deadline = time.monotonic() + END_SECONDS
    while is_alive(child) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not is_alive(child)


def test_a_gateway_that_does_not_start_shows_its_last_words(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(LocalGateway, "_arguments", lambda *_: ["--no-such-option"])
    with pytest.raises(GatewayError, match="no-such-option"):
        Client.local()
