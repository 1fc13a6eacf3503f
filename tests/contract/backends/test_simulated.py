"""The virtual cluster passes the conformance suite, in memory and with a state file."""

import itertools
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.backends.base import Launch, LaunchBackend
from gateway.backends.simulated import ManualClock, SimulatedBackend
from gateway.backends.simulated.life import FAILURE_CODE
from gateway.backends.virtual_fleet import virtual_fleet
from tests.contract.backends.harness import Kind
from tests.contract.backends.launches import KEPT_OUT, a_launch, a_manifest, tolerating
from tests.contract.backends.suite import LaunchBackendSuite

FLEET = virtual_fleet("2xdgx-h100")
PREFIX = "simulated.training-gateway.io/"
FOR_EVER = {"run-seconds": "1000000"}
SCRIPTS = {
    Kind.SUCCEEDING: {"run-seconds": "5", "appear-seconds": "1"},
    Kind.FAILING: {"run-seconds": "5", "outcome": "failed", "fail-index": "1"},
    Kind.LONG: {**FOR_EVER, "appear-seconds": "2", "delete-seconds": "3"},
    Kind.RESTARTING: FOR_EVER,
    Kind.REJECTED: {"outcome": "rejected"},
}


class SimulatedHarness:
    """Moves the clock instead of waiting."""

    failing_code = FAILURE_CODE

    def __init__(self, state_file: Path | None) -> None:
        """Start with an empty cluster."""
        self._clock = ManualClock()
        self._numbers = itertools.count(1)
        self._state_file = state_file
        self._first = SimulatedBackend(FLEET, state_file, self._clock)

    def make_backend(self) -> LaunchBackend:
        """Give a new object on the file; without one the cluster is the object."""
        if self._state_file is None:
            return self._first
        return SimulatedBackend(FLEET, self._state_file, self._clock)

    def launch(self, kind: Kind, *, workers: int = 1) -> Launch:
        """Script a gang."""
        script = {PREFIX + key: value for key, value in SCRIPTS[kind].items()}
        manifest = a_manifest(workers, annotations=script)
        return a_launch(manifest, nodes=FLEET, name=f"{kind}-{next(self._numbers)}")

    def keep_out(self, launch: Launch) -> Launch:
        """Taint nothing: the virtual cluster has no scheduler."""
        return tolerating(launch, KEPT_OUT)

    def finish(self, launch: Launch, rank: int, exit_code: int = 0) -> None:
        """End a replica."""
        self._first.finish_replica(launch.object_name, rank, exit_code, namespace=launch.namespace)

    def recreate(self, launch: Launch, rank: int) -> None:
        """Replace a pod."""
        self._first.recreate_pod(launch.object_name, rank)

    def delete_externally(self, launch: Launch) -> None:
        """Delete the object."""
        self._first.delete_behind_our_back(launch.object_name)

    def plant_foreign(self, launch: Launch) -> str:
        """Take the name."""
        return self._first.plant_foreign(launch.object_name)

    def uid_in_cluster(self, launch: Launch) -> str | None:
        """Look the name up."""
        return self._first.uid_of(launch.object_name)

    def has_started(self, launch: Launch) -> bool:
        """Whether any replica was given its plan."""
        return any(self._first.environments(launch.object_name).values())

    def environment_of(self, launch: Launch, rank: int) -> Mapping[str, str]:
        """Give a replica's plan."""
        return self._first.environments(launch.object_name)[rank]

    def log_line(self, launch: Launch, rank: int) -> str:
        """Give the first line."""
        return f"rank {rank} of {launch.object_name} on {launch.pods[rank].node}"

    def pass_time(self) -> None:
        """Move the clock."""
        self._clock.advance(60)

    def wait_until(
        self, predicate: Callable[[], bool], what: str, *, timeout_seconds: float = 15
    ) -> None:
        """Move the clock until it holds."""
        for _ in range(int(timeout_seconds) * 2):
            if predicate():
                return
            self._clock.advance(0.5)
        raise AssertionError(f"waited in vain for {what}")


class TestSimulatedInMemory(LaunchBackendSuite):
    """The cluster lives in the process."""

    @pytest.fixture
    def harness(self) -> SimulatedHarness:
        """Give an empty cluster."""
        return SimulatedHarness(None)


class TestSimulatedWithAStateFile(LaunchBackendSuite):
    """The cluster lives in a file that each back end object reads anew."""

    @pytest.fixture
    def harness(self, tmp_path: Path) -> SimulatedHarness:
        """Give an empty cluster."""
        return SimulatedHarness(tmp_path / "cluster.json")


def test_a_launch_of_another_digest_is_foreign() -> None:
    backend = SimulatedBackend(FLEET, clock=ManualClock())
    launch = a_launch()
    backend.create(launch)

    with pytest.raises(Exception, match="not this attempt's"):
        backend.create(replace(launch, spec_digest="cd" * 32))
