"""One gang in the supervisor's hands, step by step: real programs, the time passed in."""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from gateway.backends.base import ObjectOutcome, ReplicaPhase
from gateway.backends.local.folder import AttemptFolder
from gateway.backends.local.gang import FAREWELL_SECONDS, TERM_SECONDS, Gang
from gateway.backends.local.launching import record_of
from gateway.backends.local.records import ORPHANED, STOPPED
from tests.contract.backends.launches import a_launch, a_manifest

SLEEP = ["sleep", "60"]
STUBBORN = ["sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.05; done"]


class Steps:
    """A gang whose supervisor is the test."""

    def __init__(self, folder: Path, manifest: dict[str, Any], most_restarts: int = 0) -> None:
        """Gate it."""
        self.folder = AttemptFolder(folder)
        for part in ("plans", "logs"):
            (folder / part).mkdir(exist_ok=True)
        record = record_of(
            a_launch(manifest),
            uid="0" * 32,
            heartbeat_file=folder / "heartbeat",
            orphan_seconds=60,
            most_restarts=most_restarts,
        )
        self.gang = Gang(self.folder, record, port=20_000)
        self.now = 0.0

    def open(self, *ranks: int, generation: int = 0) -> None:
        """Open gates and take a step."""
        for rank in ranks:
            self.folder.write_plan(rank, generation, {})
        self.gang.step(self.now)

    def phases(self) -> list[ReplicaPhase]:
        """Give the phases by rank."""
        return [replica.phase for replica in self.gang.status.replicas]

    def until(self, predicate: Callable[[], bool], *, passing: float = 0.0) -> None:
        """Take steps until it holds; programs end in real time, the clock moves as told."""
        deadline = time.monotonic() + 10
        self.now += passing
        while not predicate():
            assert time.monotonic() < deadline, self.gang.status
            self.gang.step(self.now)
            time.sleep(0.01)

    def log(self, rank: int) -> str:
        """Read a rank's log."""
        return self.folder.log(rank).read_text()


Start = Callable[..., Steps]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    begun: list[Steps] = []

    def build(master: Sequence[str], worker: Sequence[str] | None = None, **more: Any) -> Steps:
        restarts = more.pop("most_restarts", 0)
        manifest = a_manifest(0 if worker is None else 1, master, **more)
        if worker is not None:
            sets = manifest["spec"]["pytorchReplicaSpecs"]
            container = {**sets["Worker"]["template"]["spec"]["containers"][0]}
            container["command"] = list(worker)
            sets["Worker"]["template"] = {"spec": {"containers": [container]}}
        begun.append(Steps(tmp_path, manifest, restarts))
        return begun[-1]

    yield build
    for steps in begun:
        steps.gang.stop(steps.now)
        steps.until(steps.gang.is_over, passing=60)


def test_a_replica_starts_only_when_the_whole_gang_is_open(start: Start) -> None:
    steps = start(SLEEP, SLEEP)
    steps.open(0)
    assert steps.phases() == [ReplicaPhase.GATED] * 2

    steps.open(1)
    assert steps.phases() == [ReplicaPhase.READY] * 2


def test_a_replica_that_ignores_the_request_to_go_is_killed_after_its_grace(start: Start) -> None:
    steps = start(STUBBORN)
    steps.open(0)
    steps.until(lambda: "ready" in steps.log(0))
    steps.gang.stop(steps.now)
    steps.gang.step(steps.now)

    steps.gang.step(steps.now + TERM_SECONDS - 0.1)
    assert steps.phases() == [ReplicaPhase.TERMINATING]
    steps.until(steps.gang.is_over, passing=TERM_SECONDS)
    assert steps.phases() == [ReplicaPhase.ABSENT]
    assert steps.gang.status.outcome == STOPPED


def test_workers_get_a_farewell_after_the_masters_success(start: Start) -> None:
    steps = start(["true"], SLEEP)
    steps.open(0, 1)
    steps.until(lambda: steps.gang.status.outcome == ObjectOutcome.SUCCEEDED)

    steps.gang.step(steps.now + FAREWELL_SECONDS - 0.1)
    assert steps.phases() == [ReplicaPhase.SUCCEEDED, ReplicaPhase.READY]
    steps.until(steps.gang.is_over, passing=FAREWELL_SECONDS)
    assert steps.phases() == [ReplicaPhase.SUCCEEDED, ReplicaPhase.ABSENT]


@pytest.mark.parametrize("turn", range(8))
def test_a_sigterm_that_comes_while_a_replica_starts_still_ends_it(start: Start, turn: int) -> None:
    steps = start(SLEEP)
    steps.open(0)
    time.sleep(0.012 * turn)  # the program starts within about 0.1 s; hit it at each stage
    steps.gang.stop(steps.now)
    steps.until(steps.gang.is_over)
    assert steps.phases() == [ReplicaPhase.ABSENT]


def test_a_replica_is_recreated_as_often_as_allowed_and_then_fails_the_gang(start: Start) -> None:
    steps = start(["false"], SLEEP, restart_policy="OnFailure", most_restarts=2)
    steps.open(0, 1)
    for generation in (1, 2):
        steps.until(lambda: steps.phases()[0] is ReplicaPhase.GATED)
        assert steps.phases()[1] is ReplicaPhase.READY
        steps.open(0, generation=generation)

    steps.until(steps.gang.is_over)
    assert steps.gang.status.recreations == 2
    assert steps.gang.status.outcome == ObjectOutcome.FAILED
    assert "Master 0" in steps.gang.status.message


@pytest.mark.parametrize(("code", "is_recreated"), [(3, False), (137, True)])
def test_the_policy_exit_code_recreates_only_after_signals(
    start: Start, code: int, *, is_recreated: bool
) -> None:
    steps = start(["sh", "-c", f"exit {code}"], restart_policy="ExitCode", most_restarts=1)
    steps.open(0)

    steps.until(lambda: bool(steps.gang.status.recreations) or steps.gang.is_over())

    assert bool(steps.gang.status.recreations) is is_recreated


def test_a_program_that_does_not_exist_fails_the_gang_and_says_so(start: Start) -> None:
    steps = start(["no-such-program"])
    steps.open(0)
    steps.until(steps.gang.is_over)

    assert steps.gang.status.replicas[0].exit_code == 127
    assert "cannot run no-such-program" in steps.log(0)


def test_a_folder_that_vanished_fails_the_gang(start: Start, tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    manifest = a_manifest(0, ["true"])
    spec = manifest["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"]
    spec["containers"][0]["workingDir"] = str(folder)
    steps = Steps(tmp_path, manifest)
    folder.rmdir()
    steps.open(0)
    steps.until(steps.gang.is_over)

    assert steps.phases() == [ReplicaPhase.FAILED]
    assert "cannot start" in steps.gang.status.message


def test_what_a_replica_left_behind_is_killed_with_it(start: Start) -> None:
    steps = start(["sh", "-c", "sleep 60 & echo $!"])
    steps.open(0)
    steps.until(steps.gang.is_over)

    left = Path(f"/proc/{int(steps.log(0))}/stat")
    steps.until(lambda: not left.exists() or left.read_text().split()[2] == "Z")
    assert steps.gang.status.outcome == ObjectOutcome.SUCCEEDED


def test_an_orphaned_gang_ends_with_that_outcome(start: Start) -> None:
    steps = start(SLEEP, SLEEP)
    steps.open(0, 1)
    steps.gang.orphan(steps.now)
    steps.until(steps.gang.is_over)

    assert steps.gang.status.outcome == ORPHANED
    assert steps.phases() == [ReplicaPhase.ABSENT] * 2


def test_a_gang_that_is_stopped_while_gated_starts_nothing_any_more(start: Start) -> None:
    steps = start(SLEEP)
    steps.gang.stop(steps.now)
    steps.open(0)

    assert steps.gang.is_over()
    assert steps.phases() == [ReplicaPhase.ABSENT]


def test_standard_error_stands_in_the_log_too(start: Start) -> None:
    steps = start([sys.executable, "-S", "-c", "import sys; print(1); sys.exit('two')"])
    steps.open(0)
    steps.until(steps.gang.is_over)

    assert steps.log(0).split() == ["1", "two"]
