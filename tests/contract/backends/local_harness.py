"""The local back end under test: real programs, real signals, short waits."""

import itertools
import json
import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gateway.backends.base import Launch
from gateway.backends.local import LocalBackend
from gateway.backends.virtual_fleet import virtual_fleet
from tests.contract.backends.harness import Kind
from tests.contract.backends.launches import KEPT_OUT, a_launch, a_manifest, tolerating
from tests.contract.backends.replica_program import FAILING_CODE

FLEET = virtual_fleet("2xdgx-h100")
PROGRAM = Path(__file__).with_name("replica_program.py")
PREFIX = "TRAINING_GATEWAY_"
POLL_SECONDS = 0.03
CLEAN_UP_SECONDS = 10.0


class LocalHarness:
    """A state folder and a control folder below one temporary folder."""

    failing_code = FAILING_CODE

    def __init__(self, folder: Path, orphan_seconds: float = 60) -> None:
        """Start with an empty state folder."""
        self.state = folder / "state"
        self._control = folder / "control"
        self._control.mkdir()
        self._orphan_seconds = orphan_seconds
        self._numbers = itertools.count(1)

    def make_backend(self) -> LocalBackend:
        """Give a new object on the folder."""
        return LocalBackend(self.state, FLEET, self._orphan_seconds)

    def launch(self, kind: Kind, *, workers: int = 1) -> Launch:
        """Describe a gang that runs the replica program."""
        name = f"{kind}-{next(self._numbers)}"
        command = [str(PROGRAM), kind.value, str(self._control), name, str(workers + 1)]
        policy = "OnFailure" if kind is Kind.RESTARTING else "Never"
        # -S spares the start-up of site packages, which the program does not need.
        manifest = a_manifest(workers, ["python", "-S", *command], restart_policy=policy)
        if kind is Kind.REJECTED:
            manifest = a_manifest(workers)
        return a_launch(manifest, nodes=FLEET, name=name)

    def keep_out(self, launch: Launch) -> Launch:
        """Taint nothing: this machine has no scheduler."""
        return tolerating(launch, KEPT_OUT)

    def finish(self, launch: Launch, rank: int, exit_code: int = 0) -> None:
        """Tell a replica to end."""
        path = self._control / launch.object_name / f"{rank}.code"
        path.parent.mkdir(exist_ok=True)
        path.with_suffix(".new").write_text(str(exit_code))
        path.with_suffix(".new").rename(path)

    def recreate(self, launch: Launch, rank: int) -> None:
        """Kill a replica whose policy re-creates it."""
        pid = self.pid_of(launch, rank)
        (self._control / launch.object_name / f"{rank}.json").unlink()
        os.kill(pid, signal.SIGKILL)

    def delete_externally(self, launch: Launch) -> None:
        """Remove the folder, whoever writes into it."""
        path = self.attempt(launch)
        while path.exists():
            shutil.rmtree(path, ignore_errors=True)

    def plant_foreign(self, launch: Launch) -> str:
        """Put another object in the place."""
        path = self.attempt(launch)
        path.mkdir(parents=True)
        (path / "launch.json").write_text('{"uid": "foreign", "identity": "somebody else"}')
        return "foreign"

    def uid_in_cluster(self, launch: Launch) -> str | None:
        """Read the file."""
        path = self.attempt(launch) / "launch.json"
        return str(json.loads(path.read_text())["uid"]) if path.exists() else None

    def has_started(self, launch: Launch) -> bool:
        """Whether any replica made its control folder."""
        return (self._control / launch.object_name).exists()

    def environment_of(self, launch: Launch, rank: int) -> Mapping[str, str]:
        """Read what the replica left."""
        left = self.wait_for_left(launch, rank)
        return {name: value for name, value in left.items() if name.startswith(PREFIX)}

    def pid_of(self, launch: Launch, rank: int) -> int:
        """Give the pid of the replica's own program."""
        return int(self.wait_for_left(launch, rank)["pid"])

    def wait_for_left(self, launch: Launch, rank: int) -> dict[str, Any]:
        """Read what a replica leaves once it runs: its pid and environment."""
        self.wait_until(lambda: bool(self.left_by(launch, rank)), "the replica's environment")
        return self.left_by(launch, rank)

    def left_by(self, launch: Launch, rank: int) -> dict[str, Any]:
        """Read what a replica left so far."""
        path = self._control / launch.object_name / f"{rank}.json"
        return dict(json.loads(path.read_text())) if path.exists() else {}

    def log_line(self, launch: Launch, rank: int) -> str:
        """Give the first line of the program."""
        return f"rank {rank} of {launch.object_name} begins"

    def pass_time(self) -> None:
        """Wait for several steps of a supervisor."""
        time.sleep(0.3)

    def wait_until(
        self, predicate: Callable[[], bool], what: str, *, timeout_seconds: float = 15
    ) -> None:
        """Poll."""
        deadline = time.monotonic() + timeout_seconds
        while not predicate():
            if time.monotonic() > deadline:
                raise AssertionError(f"waited in vain for {what}{self._notes()}")
            time.sleep(POLL_SECONDS)

    def attempt(self, launch: Launch) -> Path:
        """Give the place of an object."""
        return self.state / "attempts" / launch.namespace / launch.object_name

    def supervisors(self) -> list[int]:
        """Give the pids of every supervisor that introduced itself."""
        files = (self.state / "supervisors").glob("*.json")
        return [int(json.loads(path.read_text())["pid"]) for path in files]

    def clean_up(self) -> None:
        """Stop every gang and wait until no supervisor is left."""
        for mark in ("attempts/*/*", "kept/*/*/*"):
            for path in self.state.glob(mark):
                (path / "stopped").write_text("{}")
        backend = self.make_backend()
        files = list((self.state / "supervisors").glob("*.json"))
        known = [backend._state.supervisor(path.stem) for path in files]
        self.wait_until(
            lambda: not any(running and running.is_alive() for running in known),
            "every supervisor to end",
            timeout_seconds=CLEAN_UP_SECONDS,
        )

    def _notes(self) -> str:
        texts = [path.read_text() for path in self.state.glob("attempts/*/*/*.log")]
        return "".join(f"\n{text}" for text in texts if text)


@contextmanager
def local_harness(folder: Path, orphan_seconds: float = 60) -> Iterator[LocalHarness]:
    """Give a harness and leave nothing running behind."""
    harness = LocalHarness(folder, orphan_seconds)
    try:
        yield harness
    finally:
        harness.clean_up()
