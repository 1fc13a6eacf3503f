"""Runs `gateway serve` as its own program, set up by the commands that an admin would type."""

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import httpx2

from tests.cluster.gateway_world import Site
from tests.cluster.harness.processes import Program, free_port
from tests.cluster.kubeflow_world import ACCOUNT

COMMAND = (sys.executable, "-m", "gateway")
STOP_SECONDS = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """A gateway that can be started as often as one likes."""

    url: str
    token_file: Path
    """A user's token."""
    environment: Mapping[str, str]
    arguments: tuple[str, ...]
    """Of `gateway serve`."""
    log: Path


def set_up(site: Site, folder: Path) -> Installed:
    """Create the database and a user's token, as an admin would."""
    port = free_port()
    tokens, token_file = folder / "tokens", folder / "token"
    environment = _environment(site, folder)
    _run(environment, "db", "upgrade")
    adding = ("--token-file", str(tokens), "--new-token", "anna", "--namespaces", site.namespace)
    token_file.touch(mode=0o600)
    token_file.write_text(_run(environment, "serve", *adding))
    return Installed(
        url=f"http://127.0.0.1:{port}",
        token_file=token_file,
        environment=environment,
        arguments=("--token-file", str(tokens), "--port", str(port)),
        log=folder / "gateway.log",
    )


class Server:
    """The running program; killed and started again it is the same gateway."""

    def __init__(self, installed: Installed) -> None:
        """Start nothing yet."""
        self.installed = installed
        self._program: Program | None = None

    def start(self) -> None:
        """Start it and wait until it leads, knows the fleet and reaches the cluster."""
        with self.installed.log.open("ab") as output:
            child = subprocess.Popen(
                [*COMMAND, "serve", *self.installed.arguments],
                env=self.installed.environment,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        self._program = Program("gateway serve", child, self.installed.log)
        self._program.wait_ready(lambda: _is_ready(self.installed.url))

    def kill(self) -> None:
        """End it as a power cut would."""
        assert self._program is not None
        self._program.child.kill()
        self._program.child.wait()

    def stop(self) -> None:
        """Stop it as a service manager would; it has to end well."""
        if self._program is None:
            return
        self._program.stop(STOP_SECONDS)
        code = self._program.child.returncode
        assert code == 0, self._program.describe(f"ended with {code}")


def _environment(site: Site, folder: Path) -> Mapping[str, str]:
    clean = {key: value for key, value in os.environ.items() if not key.startswith("TRAINING_")}
    settings = {
        "STATE_DIR": str(folder),
        "BACKEND": "kubeflow",
        "KUBECONFIG": str(site.kubeconfig),
        "POD_PRIORITY_CLASS": ACCOUNT,
    }
    return clean | {f"TRAINING_GATEWAY_{name}": value for name, value in settings.items()}


def _run(environment: Mapping[str, str], *arguments: str) -> str:
    """Run one command to its end and give what it printed."""
    ended = subprocess.run(
        [*COMMAND, *arguments], env=environment, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def _is_ready(url: str) -> bool:
    answer = httpx2.get(f"{url}/readyz", timeout=10, trust_env=False)
    checks = answer.json()["checks"] if answer.is_success else {}
    return {"ok", "this process"} == set(checks.values())
