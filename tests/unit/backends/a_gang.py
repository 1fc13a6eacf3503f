"""A local gang whose programs are played by the test: nothing runs, the time is passed in."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gateway.backends.base import ReplicaPhase
from gateway.backends.local.folder import AttemptFolder
from gateway.backends.local.gang import Gang
from gateway.backends.local.launching import record_of
from gateway.backends.local.liveness import Running
from tests.contract.backends.launches import a_launch


@dataclass
class Played:
    """A program that ends when the test says so."""

    command: list[str]
    environment: dict[str, str]
    folder: str
    log: Path
    code: int | None = None
    signals: list[int] = field(default_factory=list)
    running: Running | None = None

    def exit_code(self) -> int | None:
        """Give what the test set."""
        return self.code

    def signal(self, number: int) -> None:
        """Note the signal."""
        self.signals.append(number)


class PlayedGang:
    """A gang in a folder, with every program that it started."""

    def __init__(self, path: Path, manifest: dict[str, Any], *, most_restarts: int = 3) -> None:
        self.folder = AttemptFolder(path)
        (path / "plans").mkdir()
        self.started: list[Played] = []
        self.missing: set[str] = set()
        """Programs that cannot be started."""
        self.now = 100.0
        record = record_of(
            a_launch(manifest),
            uid="u",
            heartbeat_file=path / "heartbeat",
            orphan_seconds=60,
            most_restarts=most_restarts,
        )
        self.gang = Gang(self.folder, record, 20_123, self._start)

    def _start(self, command: list[str], environment: dict[str, str], *rest: Any) -> Played:
        if command[0] in self.missing:
            raise FileNotFoundError(2, "No such file or directory", command[0])
        self.started.append(Played(command, environment, *rest))
        return self.started[-1]

    def open(self, *ranks: int, generation: int = 0, **plan: str) -> None:
        """Open gates and take a step."""
        for rank in ranks:
            self.folder.write_plan(rank, generation, plan)
        self.step()

    def step(self, after_seconds: float = 0.0) -> None:
        """Take a step some time later."""
        self.now += after_seconds
        self.gang.step(self.now)

    def end(self, number: int, code: int) -> None:
        """Let the program that was started as this one end."""
        self.started[number].code = code
        self.step()

    def program(self, rank: int) -> Played:
        """Give the newest program of a rank."""
        return next(p for p in reversed(self.started) if p.log == self.folder.log(rank))

    @property
    def phases(self) -> list[ReplicaPhase]:
        """Give the phases by rank."""
        return [replica.phase for replica in self.gang.status.replicas]

    @property
    def outcome(self) -> tuple[str, str]:
        """Give outcome and message."""
        return self.gang.status.outcome, self.gang.status.message

    def stored(self) -> dict[str, Any]:
        """Give the status as its file would hold it."""
        found: dict[str, Any] = json.loads(json.dumps(self.gang.status.to_json()))
        return found
