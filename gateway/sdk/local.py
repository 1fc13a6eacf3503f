"""A gateway of one's own as a child process: started, waited for, stopped at the end."""

import atexit
import os
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

from gateway.core.vocabulary import ENVIRONMENT_PREFIX
from gateway.errors import GatewayError, TimedOut
from gateway.sdk.credentials import CONTEXT_FILE, read_context

STOP_SECONDS = 10.0
POLL_SECONDS = 0.1


class LocalGateway:
    """A running `gateway dev --ephemeral` with its address and token."""

    def __init__(self, *, start_timeout_seconds: float) -> None:
        """Start it and wait until it has said where it listens.

        Raises:
            GatewayError: it ended at once; its last words are in the text.
            TimedOut: it did not come up in time.
        """
        if find_spec("uvicorn") is None:
            raise GatewayError(
                "a local gateway needs the server extra",
                hint="pip install 'training-gateway[server]'",
            )
        self._folder = tempfile.TemporaryDirectory(prefix="training-gateway-")
        self._output = Path(self._folder.name) / "gateway.log"
        self._child = self._start(Path(self._folder.name))
        atexit.register(self.stop)
        try:
            context = self._wait_for_context(start_timeout_seconds)
        except GatewayError:
            self.stop()
            raise
        self.url, self.token = context["url"], context["token"]

    def _start(self, folder: Path) -> subprocess.Popen[bytes]:
        # Settings of another gateway (a database URL above all) must not leak into this one.
        inherited = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(ENVIRONMENT_PREFIX)
        }
        with self._output.open("wb") as output:
            return subprocess.Popen(
                # Not `gateway` on PATH, which may belong to another environment than this kernel.
                [sys.executable, "-m", "gateway.sdk.local_child", "dev", *self._arguments(folder)],
                env=inherited,
                # Held open and never written to: the child sees its end when this program dies.
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def _arguments(self, folder: Path) -> list[str]:
        # Port 0 lets the kernel choose, so two notebooks never race for one port.
        return ["--ephemeral", "--port", "0", "--state-dir", str(folder)]

    def _wait_for_context(self, seconds: float) -> dict[str, str]:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            with suppress(GatewayError):  # half written
                context = read_context(Path(self._folder.name) / CONTEXT_FILE)
                # The file is written before the server listens.
                if {"url", "token"} <= set(context) and is_listening(context["url"]):
                    return context
            if self._child.poll() is not None:
                raise GatewayError(
                    f"gateway dev ended with {self._child.returncode}: {self._last_words()}",
                    hint="run it by hand: gateway dev",
                )
            time.sleep(POLL_SECONDS)
        raise TimedOut(
            f"gateway dev did not come up in {seconds:g} s: {self._last_words()}",
            hint="run it by hand: gateway dev",
        )

    def _last_words(self) -> str:
        return self._output.read_text(errors="replace").strip()[-500:]

    def stop(self) -> None:
        """End it: asked first, made to after a while; twice is fine."""
        atexit.unregister(self.stop)
        if self._child.poll() is None:
            self._child.terminate()
            try:
                self._child.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self._child.kill()
                self._child.wait()
        if self._child.stdin is not None:
            self._child.stdin.close()
        self._folder.cleanup()


def is_listening(url: str) -> bool:
    """Whether anybody takes connections at this address."""
    place = urlsplit(url)
    try:
        with socket.create_connection((place.hostname, place.port), timeout=1.0):
            return True
    except OSError:
        return False
