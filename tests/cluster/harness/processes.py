"""Starts the programs of a control plane, waits until they answer, and ends them in order.

Only children of this object are ever signalled. A guard process kills them should this one die.
"""

import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO

import httpx2

from tests.cluster.harness import guard
from tests.cluster.harness.waiting import Waited, wait_until

NOT_YET = (httpx2.NetworkError, httpx2.TimeoutException, httpx2.RemoteProtocolError)


class ProgramFailed(RuntimeError):
    """A program of the control plane ended or never answered; holds the end of its log."""


def free_port() -> int:
    """Give a loopback port that nobody listens on right now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Program:
    """One running child with its log file."""

    def __init__(self, name: str, child: subprocess.Popen[bytes], log: Path) -> None:
        self.name = name
        self.child = child
        self.log = log

    def wait_ready(self, probe: Callable[[], bool], timeout_seconds: float = 60.0) -> None:
        """Wait until the probe holds.

        Raises:
            ProgramFailed: the program ended, or the time is over.
        """

        def check() -> bool:
            if self.child.poll() is not None:
                raise ProgramFailed(self.describe(f"ended with {self.child.returncode}"))
            return probe()

        try:
            wait_until(check, f"{self.name} to answer", timeout_seconds, swallow=NOT_YET)
        except Waited as error:
            raise ProgramFailed(self.describe(str(error))) from error

    def describe(self, trouble: str) -> str:
        """Give the trouble together with the last lines of the log."""
        lines = self.log.read_text(errors="replace").splitlines()[-15:]
        return f"{self.name}: {trouble}; end of {self.log}:\n" + "\n".join(lines)

    def stop(self, patience_seconds: float = 5.0) -> None:
        """Ask the program to end, then kill it; returns when it is gone."""
        if self.child.poll() is None:
            self.child.send_signal(signal.SIGTERM)
        try:
            self.child.wait(patience_seconds)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()


class Programs:
    """The children of one control plane and the guard that outlives this process."""

    def __init__(self, folder: Path) -> None:
        self._logs = folder / "logs"
        self._logs.mkdir(parents=True, exist_ok=True)
        self._guard = subprocess.Popen(
            [sys.executable, "-P", guard.__file__, str(folder)],
            stdin=subprocess.PIPE,
            start_new_session=True,
        )

    def start(
        self, name: str, command: list[str], environment: dict[str, str] | None = None
    ) -> Program:
        """Start one program with its output in logs/NAME.log."""
        log = self._logs / f"{name}.log"
        with log.open("ab") as output:
            # A session of its own keeps a terminal's Ctrl-C away: the order of ending is ours.
            child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=environment,
                start_new_session=True,
            )
        self._tell_guard(f"{child.pid} {guard.start_ticks(child.pid)}\n")
        return Program(name, child, log)

    def close(self) -> None:
        """Let the guard end; it removes the folder."""
        self._pipe.close()
        self._guard.wait()

    def _tell_guard(self, line: str) -> None:
        self._pipe.write(line.encode())
        self._pipe.flush()

    @property
    def _pipe(self) -> IO[bytes]:
        if self._guard.stdin is None:
            raise ProgramFailed("the guard has no input")
        return self._guard.stdin
