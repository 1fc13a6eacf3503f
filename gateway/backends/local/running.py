"""Starts a replica's program on this machine, ends it, and tells when it has ended.

The operating system's side only; which replica runs when is `gang`'s concern.
"""

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

from gateway.backends.local.liveness import Running, identify

SHIM: Final = Path(__file__).with_name("replica.py")
KILLED: Final = 128 + signal.SIGKILL
INHERITED: Final = frozenset(
    {"HOME", "LANG", "LOGNAME", "PATH", "PYTHONPATH", "TMPDIR", "TZ", "USER", "LD_LIBRARY_PATH"}
)
"""What a replica sees of the gateway's environment: enough to run, none of its secrets."""


class RunningReplica:
    """One replica's program with everything that it started."""

    def __init__(
        self, command: list[str], environment: dict[str, str], folder: str, log: Path
    ) -> None:
        """Start it; its output goes to the end of the log. Raises OSError when it cannot."""
        log.parent.mkdir(exist_ok=True)
        with log.open("ab") as output:
            self._started = subprocess.Popen(
                # -I and -S: nothing of the user's site packages or PYTHONPATH may break the shim.
                [sys.executable, "-I", "-S", str(SHIM), str(os.getpid()), *command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=folder,
                env=base_environment() | environment,
                # A group of its own to signal, out of reach of the terminal's Ctrl-C.
                start_new_session=True,
            )
        self.running: Running | None = identify(self._started.pid)

    def exit_code(self) -> int | None:
        """Give the exit code once it has ended; what it left behind is killed then."""
        if self._started.returncode is not None:
            return _code(self._started.returncode)
        pid = self._started.pid
        if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            return None
        # Not reaped yet, so the group's number cannot belong to anybody else.
        self.signal(signal.SIGKILL)
        return _code(self._started.wait())

    def signal(self, number: int) -> None:
        """Send a signal to everything of it."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._started.pid, number)


def base_environment() -> dict[str, str]:
    """Give what each replica inherits; `python` on the path is the gateway's own."""
    environment = {name: os.environ[name] for name in INHERITED & os.environ.keys()}
    own = str(Path(sys.executable).parent)
    environment["PATH"] = f"{own}{os.pathsep}{environment.get('PATH', os.defpath)}"
    return environment


def _code(returned: int) -> int:
    return returned if returned >= 0 else 128 - returned
