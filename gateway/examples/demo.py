"""The demonstration behind `make demo`: three real training jobs, of which one must wait.

Starts a gateway of its own on a free port with a virtual fleet, talks to it as any user would,
shows what users see, and cleans up. Exit code 0 only when all three jobs trained well and every
device came back.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console

from gateway.cli.explaining import explanation_lines
from gateway.cli.fleet import map_lines
from gateway.cli.jobs import COLUMNS
from gateway.cli.output import Format, show_list
from gateway.sdk import Client, JobHandle

EXAMPLES = Path(__file__).parent
FLEET = "2xdgx-h100"
MANIFESTS = ("digits.yaml", "digits-wide.yaml", "digits-late.yaml")
START_SECONDS = 30
JOB_SECONDS = 120
CONSOLE = Console(highlight=False, soft_wrap=True)
# `make` prepared a virtual environment that the user's shell does not know: name its programs.
NEXT_STEPS = """\
What to type next:
  make dev                      keep a gateway running here; then, in another terminal:
  .venv/bin/gateway submit gateway/examples/digits/digits.yaml --watch
  .venv/bin/gateway ls
  .venv/bin/gateway device map
"""


def main() -> int:
    """Run the demonstration and give the exit code."""
    with tempfile.TemporaryDirectory(prefix="training-gateway-demo-") as folder:
        title(f"A gateway on this machine: SQLite, local processes, a virtual fleet of {FLEET}")
        with gateway(Path(folder)) as client:
            return demonstrate(client)


def demonstrate(client: Client) -> int:
    """Submit, show, wait, and check that all came back."""
    title("Three jobs ask for 8 GPUs and 8 NICs each; the fleet has 16 of each")
    jobs = [client.submit(manifest(name)) for name in MANIFESTS]
    wait_until_decided(jobs)
    title("The queue")
    show_list([job.view for job in client.jobs.list()], COLUMNS, Format.TABLE)
    title("Why the third one waits")
    for line in explanation_lines(jobs[2].explain()):
        CONSOLE.print(line, markup=False)
    title("Who holds what: each GPU beside its NIC")
    show_map(client)
    title("Rank 0 of the first job, as it trains")
    show_lines(jobs[0])
    title("All three, to the end")
    wait_for(jobs)
    show_list([job.view for job in client.jobs.list()], COLUMNS, Format.TABLE)
    title("The map is empty again")
    show_map(client)
    held = [device for device in client.devices.list() if not device.is_free]
    CONSOLE.print(f"\n{NEXT_STEPS}", markup=False)
    return 1 if held else 0


def show_lines(job: JobHandle) -> None:
    """Print what rank 0 of a job writes, until it ends."""
    for line in job.logs(rank=0, follow=True):
        CONSOLE.print(f"  {line}", markup=False)


def wait_for(jobs: list[JobHandle]) -> None:
    """Wait until all have succeeded."""
    for job in jobs:
        job.wait(timeout=JOB_SECONDS, polling_interval=0.2)


def manifest(name: str) -> Path:
    """Give the path of one of the example manifests."""
    return EXAMPLES / "digits" / name


def wait_until_decided(jobs: list[JobHandle]) -> None:
    """Wait until two jobs hold devices and the third says why it waits."""
    deadline = time.monotonic() + START_SECONDS
    # Polled, as a user's script would: the demonstration knows nothing but the public surface.
    while time.monotonic() < deadline:
        states = [job.refresh().state for job in jobs]
        if all(state == "running" for state in states[:2]) and jobs[2].reason:
            return
        time.sleep(0.1)
    raise SystemExit("the gateway did not decide in time; its log is above")


def show_map(client: Client) -> None:
    """Draw the device map."""
    for line in map_lines(list(client.devices.list())):
        CONSOLE.print(line)


def title(text: str) -> None:
    """Print a heading."""
    CONSOLE.print(f"\n[bold]== {text}[/bold]")


@contextlib.contextmanager
def gateway(folder: Path) -> Iterator[Client]:
    """Start a gateway, and stop it and everything it started at the end."""
    command = [sys.executable, "-m", "gateway", "dev", "--port", "0"]
    command += ["--state-dir", str(folder), "--fleet", FLEET]
    # Into a file, not a pipe: nobody reads while jobs train, and a full pipe would stop the server.
    log = (folder / "gateway.log").open("w")
    is_fine = False
    server = subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ})
    try:
        url, token = read_context(folder / "context.json", server)
        with Client(url=url, token=token) as client:
            yield client
            is_fine = True
    finally:
        if not is_fine:
            # The folder goes with this block, and with it the only word on what went wrong.
            sys.stderr.write((folder / "gateway.log").read_text()[-4000:])
        server.send_signal(signal.SIGTERM)
        server.wait(timeout=30)
        log.close()


def read_context(file: Path, server: "subprocess.Popen[bytes]") -> tuple[str, str]:
    """Wait for the file in which the server says where it is."""
    deadline = time.monotonic() + START_SECONDS
    # The file is renamed into place whole, so that it is complete once it exists.
    while time.monotonic() < deadline and server.poll() is None:
        if file.exists():
            context = json.loads(file.read_text())
            return context["url"], context["token"]
        time.sleep(0.05)
    raise SystemExit("the gateway did not start; its log is above")


if __name__ == "__main__":
    sys.exit(main())
