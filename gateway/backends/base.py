"""The protocol every launch back end implements, and the values that pass through it.

Every call is idempotent, is bounded in time (5 s per call at most), and raises only
`ClusterUnreachable` (try again later), `ClusterRejected` (refused for good) or `ForeignObject`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar, Protocol

from gateway.core.devices.seen import DeviceSeen, NodeSeen
from gateway.core.resources.node_rules import Toleration
from gateway.core.vocabulary import BackendName, DeviceKind, Guarantee
from gateway.errors import ClusterRejected

__all__ = [
    "GONE_PHASES",
    "DeviceSeen",
    "ForeignObject",
    "Launch",
    "LaunchBackend",
    "NodeSeen",
    "ObjectOutcome",
    "ObjectRef",
    "Observation",
    "PlannedDevice",
    "PlannedPod",
    "ReplicaPhase",
    "ReplicaSeen",
]


class ForeignObject(ClusterRejected):
    """An object of this name exists that is not this attempt's; it is left alone."""

    # A code of its own: the job is to be renamed or the stranger removed, a retry cannot help.
    code = "foreign_object"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedDevice:
    """One reserved device of one pod."""

    kind: DeviceKind
    ordinal: int
    name: str
    uuid: str = ""
    pci_address: str = ""
    numa: int = -1
    rail: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedPod:
    """One pod's place: the reservation that its gate is opened onto."""

    pod_set: str
    """Master or Worker."""
    index: int
    rank: int
    """Global node rank: Master 0, Worker i is i + 1 (i without a Master)."""
    node: str
    devices: tuple[PlannedDevice, ...] = ()
    cpu_millis: int = 0
    memory_bytes: int = 0
    tolerations: tuple[Toleration, ...] = ()
    """Those of its flavor when it was granted; the same for all pods of a set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """One attempt to be launched; equal for every retry of the same attempt."""

    job_id: str
    """Public id."""
    attempt: int
    namespace: str
    object_name: str
    """Deterministic: job name, a short hash of the job id, attempt."""
    epoch: int
    spec_digest: str
    manifest: Mapping[str, Any]
    """The user's PyTorchJob document."""
    pods: tuple[PlannedPod, ...]
    """Every pod of the gang, by rank."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectRef:
    """What identifies a launched object: a name alone could be somebody else's."""

    namespace: str
    name: str
    uid: str


class ReplicaPhase(StrEnum):
    """What was seen of one pod or process."""

    ABSENT = "absent"
    GATED = "gated"
    """Exists, its gate is closed."""
    PENDING = "pending"
    """Open, not yet running."""
    RUNNING = "running"
    READY = "ready"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    TERMINATING = "terminating"
    """Asked to go, still there; may hold its devices."""


# TERMINATING is not among them: a pod in its grace period still has its GPUs open.
GONE_PHASES = frozenset({ReplicaPhase.ABSENT, ReplicaPhase.SUCCEEDED, ReplicaPhase.FAILED})
"""Phases in which a replica surely uses no device."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaSeen:
    """One replica as last seen."""

    pod_set: str
    index: int
    phase: ReplicaPhase
    # Empty rather than None where nothing is known: it sorts, compares and prints without a case.
    uid: str = ""
    node: str = ""
    exit_code: int | None = None
    message: str = ""


class ObjectOutcome(StrEnum):
    """What the object as a whole says."""

    UNDECIDED = "undecided"
    SUCCEEDED = "succeeded"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """Everything seen of one object at one moment."""

    exists: bool
    uid: str = ""
    is_suspended: bool = False
    outcome: ObjectOutcome = ObjectOutcome.UNDECIDED
    replicas: tuple[ReplicaSeen, ...] = ()
    """Replicas that exist or existed, by pod set and index."""
    recreations: int = 0
    """Pods re-created since the object was started."""
    is_lost: bool = False
    """Its replicas vanished without a result: the gang was lost, the training did not fail."""
    message: str = ""

    @property
    def are_pods_gone(self) -> bool:
        """Whether nothing of it can still use a device."""
        # Of no replicas this holds: what never came to be holds nothing.
        return all(replica.phase in GONE_PHASES for replica in self.replicas)


# Calls bring the whole launch, not an id alone: a gateway that restarts has nothing but its
# database, so a back end finds, judges and repeats everything from what one call says.
class LaunchBackend(Protocol):
    """Where gangs run. Implementations: local processes, a virtual cluster, Kubeflow."""

    name: ClassVar[BackendName]
    calls_at_once: ClassVar[int]
    """Calls about different launches that may go on at a time."""
    guarantee: Guarantee

    def inventory(self) -> Sequence[NodeSeen]:
        """Give every node with its devices; raises ClusterUnreachable rather than a part."""

    def create(self, launch: Launch) -> ObjectRef:
        """Create the object suspended, or adopt this attempt's own object of an earlier call."""

    def find(self, launch: Launch) -> ObjectRef | None:
        """Look for this attempt's object by its name; raises ForeignObject when not ours."""

    def hold(self, launch: Launch, ref: ObjectRef) -> None:
        """Hold the devices in the cluster (nothing to do where the guarantee is advisory)."""

    def unsuspend(self, launch: Launch, ref: ObjectRef) -> None:
        """Let the object start; its pods appear gated."""

    def open_gates(self, launch: Launch, ref: ObjectRef) -> bool:
        """Pin each gated pod to its place and open it; True once every pod is open.

        The first time nothing is opened before the whole gang exists; later a re-created replica
        is opened alone, onto its old place.
        """

    def observe(self, launch: Launch, ref: ObjectRef) -> Observation:
        """Look at the object and its pods."""

    def stop(self, launch: Launch, ref: ObjectRef) -> None:
        """Begin to end it: nothing of it may start again and its pods go; keeps finished logs."""

    def delete(self, ref: ObjectRef) -> None:
        """Remove the object with this UID; gone already is success."""

    def logs(self, launch: Launch, rank: int, *, follow: bool, tail: int | None) -> Iterator[str]:
        """Give lines of one rank, without line ends; ends when the replica has ended."""

    def is_reachable(self) -> bool:
        """Whether the cluster answers now."""
