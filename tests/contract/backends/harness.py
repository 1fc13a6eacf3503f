"""What a launch back end must bring along so that the conformance suite can be run on it.

The suite speaks to the back end through its protocol alone. Whatever must happen behind it (a
replica ends, somebody deletes the object, a stranger takes the name) the harness makes happen.
"""

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Protocol

from gateway.backends.base import Launch, LaunchBackend


class Kind(StrEnum):
    """Kinds of gang that a harness can describe."""

    SUCCEEDING = "succeeding"
    """Every replica ends with 0 by itself, soon after it started."""
    FAILING = "failing"
    """The last rank ends with `Harness.failing_code` by itself, the others run on."""
    LONG = "long"
    """Every replica runs until `Harness.finish`."""
    RESTARTING = "restarting"
    """As LONG, and a replica that is lost is re-created."""
    REJECTED = "rejected"
    """The cluster refuses the manifest for good."""


class Harness(Protocol):
    """One cluster, real or not, empty at the start of each test."""

    failing_code: int
    """Exit code of the failing rank of Kind.FAILING."""

    def make_backend(self) -> LaunchBackend:
        """Give a new back end object on the same cluster, as after a restart of the gateway."""

    def launch(self, kind: Kind, *, workers: int = 1) -> Launch:
        """Describe a Master and Workers under a name that no earlier launch had.

        Every pod's plan names a node that exists, one GPU and one NIC.
        """

    def keep_out(self, launch: Launch) -> Launch:
        """Taint the launch's nodes; gives it as planned under a flavor that tolerates this.

        A back end without a scheduler has nothing to taint.
        """

    def finish(self, launch: Launch, rank: int, exit_code: int = 0) -> None:
        """Let a running replica end with this exit code."""

    def recreate(self, launch: Launch, rank: int) -> None:
        """Let a replica (of Kind.RESTARTING) be lost and re-created, gated again."""

    def delete_externally(self, launch: Launch) -> None:
        """Delete the object as a stranger would; gone already is fine."""

    def plant_foreign(self, launch: Launch) -> str:
        """Create a stranger's object under this launch's name; gives its uid."""

    def uid_in_cluster(self, launch: Launch) -> str | None:
        """Give the uid of whatever object has this name, seen without the back end."""

    def has_started(self, launch: Launch) -> bool:
        """Whether a program of this launch ran, by evidence other than the back end's word."""

    def environment_of(self, launch: Launch, rank: int) -> Mapping[str, str]:
        """Give the TRAINING_GATEWAY_* environment that a started replica really sees."""

    def log_line(self, launch: Launch, rank: int) -> str:
        """Give the first line that this rank prints; it prints at least one more until it ends."""

    def pass_time(self) -> None:
        """Let enough time pass for something forbidden to happen (a second at most)."""

    def wait_until(
        self, predicate: Callable[[], bool], what: str, *, timeout_seconds: float = 15
    ) -> None:
        """Wait for a condition; AssertionError naming `what` when it does not come true."""
