"""Servers under test, each a process of its own: the gateway, and the bare echo beside it."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from gateway.api.tokens import new_token, token_line
from gateway.core.vocabulary import ENVIRONMENT_PREFIX, Role
from gateway.db.migrations import upgrade
from gateway.service.context import Caller

START_SECONDS = 60
NOTHING: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A server that answers."""

    port: int
    token: str = ""
    pid: int = 0


def free_port() -> int:
    """Give a loopback port that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def running_gateway(
    url: str, folder: Path, module: str = "", more: Mapping[str, str] = NOTHING
) -> Iterator[Running]:
    """Run `gateway serve` on this database over a simulated cluster of two nodes.

    Another module may be named that serves in its stead, and more of its environment.
    """
    upgrade(url)
    token, port = new_token(), free_port()
    tokens = folder / "tokens"
    caller = Caller(name="bench", role=Role.ADMIN, namespaces=("*",))
    tokens.write_text(token_line(token, caller) + "\n", encoding="utf-8")
    tokens.chmod(0o600)
    settings = {
        "DATABASE_URL": url,
        "STATE_DIR": str(folder),
        "BACKEND": "simulated",
        "TOKEN_FILE": str(tokens),
        "LISTEN_PORT": str(port),
    }
    environment = {f"{ENVIRONMENT_PREFIX}{name}": value for name, value in settings.items()}
    command = [sys.executable, "-m", *([module] if module else ["gateway", "serve"])]
    with _process(command, port, {**environment, **more}) as pid:
        yield Running(port=port, token=token, pid=pid)


@contextmanager
def running_echo() -> Iterator[Running]:
    """Run the bare FastAPI echo."""
    port = free_port()
    command = [sys.executable, "-m", "uvicorn", "tests.bench._echo:app", "--port", str(port)]
    command += ["--no-access-log", "--log-level", "warning"]
    with _process(command, port, {}) as pid:
        yield Running(port=port, pid=pid)


def resident_kilobytes(pid: int) -> int:
    """Give the resident memory of a process."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))


@contextmanager
def _process(command: list[str], port: int, environment: Mapping[str, str]) -> Iterator[int]:
    process = subprocess.Popen(
        command, env={**os.environ, **environment}, stdin=subprocess.DEVNULL, stdout=sys.stderr
    )
    try:
        _await_port(process, port)
        yield process.pid
    finally:
        process.terminate()
        try:
            process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _await_port(process: "subprocess.Popen[bytes]", port: int) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"the server ended with {process.returncode}: {process.args!r}")
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise RuntimeError(f"nothing listens on {port}")
