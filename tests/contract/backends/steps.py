"""The steps of the conformance suite: bring a launch to a point and look at it."""

from gateway.backends.base import (
    Launch,
    LaunchBackend,
    ObjectOutcome,
    ObjectRef,
    Observation,
    ReplicaPhase,
    ReplicaSeen,
)
from tests.contract.backends.harness import Harness

STARTED = frozenset({ReplicaPhase.READY, ReplicaPhase.SUCCEEDED, ReplicaPhase.FAILED})
CLOSED = frozenset({ReplicaPhase.ABSENT, ReplicaPhase.GATED})


class Run:
    """One launch on one back end."""

    def __init__(self, harness: Harness, launch: Launch) -> None:
        """Create the object."""
        self.harness = harness
        self.launch = launch
        self.backend: LaunchBackend = harness.make_backend()
        self.ref: ObjectRef = self.backend.create(launch)

    def seen(self) -> Observation:
        """Observe now."""
        return self.backend.observe(self.launch, self.ref)

    def replica(self, rank: int) -> ReplicaSeen | None:
        """Observe one rank; None when the back end lists nothing of it."""
        pod = self.launch.pods[rank]
        for replica in self.seen().replicas:
            if (replica.pod_set, replica.index) == (pod.pod_set, pod.index):
                return replica
        return None

    def phase(self, rank: int) -> ReplicaPhase:
        """Observe one rank's phase."""
        replica = self.replica(rank)
        return replica.phase if replica else ReplicaPhase.ABSENT

    def phases(self) -> list[ReplicaPhase]:
        """Observe every rank's phase."""
        by_name = {(r.pod_set, r.index): r.phase for r in self.seen().replicas}
        return [
            by_name.get((pod.pod_set, pod.index), ReplicaPhase.ABSENT) for pod in self.launch.pods
        ]

    def shape(self) -> list[tuple[object, ...]]:
        """Observe what must not change by itself."""
        return shape(self.seen())

    def unsuspend(self) -> None:
        """Hold and start it, without opening a gate."""
        self.backend.hold(self.launch, self.ref)
        self.backend.unsuspend(self.launch, self.ref)

    def wait_for_gated(self) -> None:
        """Wait until the whole gang is there, gated."""
        self.harness.wait_until(
            lambda: set(self.phases()) == {ReplicaPhase.GATED},
            "the whole gang to be gated",
        )

    def open(self) -> None:
        """Call open_gates until it says that every pod is open."""
        self.harness.wait_until(
            lambda: self.backend.open_gates(self.launch, self.ref), "every gate to be open"
        )

    def start(self) -> None:
        """Bring it from created to every replica started."""
        self.unsuspend()
        self.open()
        self.wait_for_started()

    def wait_for_started(self) -> None:
        """Wait until every replica is ready or has ended."""
        self.harness.wait_until(lambda: set(self.phases()) <= STARTED, "every replica to be ready")

    def wait_for_outcome(self, outcome: ObjectOutcome) -> None:
        """Wait until the object says this."""
        self.harness.wait_until(lambda: self.seen().outcome is outcome, f"outcome {outcome}")

    def wait_for_gone(self) -> None:
        """Wait until no replica can still use a device."""
        self.harness.wait_until(lambda: self.seen().are_pods_gone, "all pods to be gone")


def shape(seen: Observation) -> list[tuple[object, ...]]:
    """Give what two looks at a gang that is left alone have in common."""
    whole = (seen.exists, seen.uid, seen.is_suspended, seen.outcome, seen.recreations)
    return [whole, *((r.pod_set, r.index, r.phase, r.uid, r.node) for r in seen.replicas)]
