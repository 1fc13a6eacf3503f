"""Runs `gateway serve` as its own program, set up by the commands that an admin would type."""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2

from tests.cluster.gateway_world import Site
from tests.cluster.harness.processes import Program, free_port
from tests.cluster.kubeflow_world import ACCOUNT

COMMAND = (sys.executable, "-m", "gateway")
STOP_SECONDS = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """What a user needs."""

    url: str
    token_file: Path


@contextmanager
def serve(site: Site, folder: Path) -> Iterator[Address]:
    """Create the database, a user's token and the server; stop it as a service manager would."""
    url = f"http://127.0.0.1:{free_port()}"
    tokens, token_file = folder / "tokens", folder / "token"
    environment = _environment(site, folder)
    _run(environment, "db", "upgrade")
    adding = ("--token-file", str(tokens), "--new-token", "anna", "--namespaces", site.namespace)
    token_file.touch(mode=0o600)
    token_file.write_text(_run(environment, "serve", *adding))
    log = folder / "gateway.log"
    with log.open("wb") as output:
        child = subprocess.Popen(
            [*COMMAND, "serve", "--token-file", str(tokens), "--port", url.rpartition(":")[2]],
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    program = Program("gateway serve", child, log)
    try:
        program.wait_ready(lambda: _is_ready(url))
        yield Address(url=url, token_file=token_file)
    finally:
        program.stop(STOP_SECONDS)
    assert child.returncode == 0, program.describe(f"ended with {child.returncode}")


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
