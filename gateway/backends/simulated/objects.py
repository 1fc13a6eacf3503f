"""The stored form of the virtual cluster: objects, their replicas, and what was done to nodes.

Plain values that turn into JSON and back. Times are seconds of the back end's clock, None where a
thing has not happened.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from gateway.backends.base import Launch
from gateway.backends.environment import plan_environment
from gateway.backends.simulated.script import Outcome, Script


@dataclass(slots=True, kw_only=True)
class VirtualReplica:
    """One pod, present or past."""

    pod_set: str
    index: int
    rank: int
    node: str = ""
    """Empty until its gate is opened."""
    environment: dict[str, str] = field(default_factory=dict)
    generation: int = 0
    """How often it was re-created."""
    appears_at: float | None = None
    opened_at: float | None = None
    ended_at: float | None = None
    exit_code: int | None = None
    terminating_at: float | None = None
    is_vanished: bool = False
    """Gone without a result."""
    message: str = ""


@dataclass(slots=True, kw_only=True)
class VirtualObject:
    """One launched object and its pods."""

    namespace: str
    name: str
    uid: str
    identity: str
    """Job, attempt and digest: what makes an object this attempt's own."""
    script: Script
    replicas: list[VirtualReplica]
    unsuspended_at: float | None = None
    stopped_at: float | None = None
    deleted_at: float | None = None
    was_opened: bool = False
    """Whether the whole gang was opened once; later openings are of re-created replicas."""
    outcome: str = ""
    """An ObjectOutcome once decided."""
    is_lost: bool = False
    message: str = ""


@dataclass(slots=True, kw_only=True)
class VirtualCluster:
    """Everything that a state file holds."""

    objects: dict[str, VirtualObject] = field(default_factory=dict)
    """By key."""
    leaving: dict[str, VirtualObject] = field(default_factory=dict)
    """Deleted objects whose pods still linger, by uid."""
    node_health: dict[str, str] = field(default_factory=dict)
    """Only of nodes that are not healthy."""
    created: int = 0
    """Counts creations; makes uids."""


def key_of(namespace: str, name: str) -> str:
    """Give the key under which an object is stored."""
    return f"{namespace}/{name}"


def identity_of(launch: Launch) -> str:
    """Give what must be equal for an object to be this attempt's own."""
    return f"{launch.job_id}/{launch.attempt}/{launch.spec_digest}"


def new_object(launch: Launch, uid: str, script: Script) -> VirtualObject:
    """Build the suspended object of a launch."""
    return VirtualObject(
        namespace=launch.namespace,
        name=launch.object_name,
        uid=uid,
        identity=identity_of(launch),
        script=script,
        replicas=[
            VirtualReplica(pod_set=pod.pod_set, index=pod.index, rank=pod.rank)
            for pod in launch.pods
        ],
    )


def assign(launch: Launch, replica: VirtualReplica, now: float) -> None:
    """Open a replica's gate onto its place in the launch."""
    # By rank rather than by position: a launch need not list its pods in order.
    pod = next(pod for pod in launch.pods if pod.rank == replica.rank)
    replica.node = pod.node
    replica.environment = plan_environment(launch, pod)
    replica.opened_at = now


def to_json(cluster: VirtualCluster) -> dict[str, Any]:
    """Give the JSON document of a cluster."""
    return asdict(cluster)


def from_json(document: Mapping[str, Any]) -> VirtualCluster:
    """Read what `to_json` gave."""
    return VirtualCluster(
        objects={key: _object(entry) for key, entry in document["objects"].items()},
        leaving={key: _object(entry) for key, entry in document["leaving"].items()},
        node_health=dict(document["node_health"]),
        created=document["created"],
    )


def _object(entry: Mapping[str, Any]) -> VirtualObject:
    # Unknown keys raise: a file of a newer release is refused rather than half understood.
    script = Script(**{**entry["script"], "outcome": Outcome(entry["script"]["outcome"])})
    replicas = [VirtualReplica(**replica) for replica in entry["replicas"]]
    return VirtualObject(**{**entry, "script": script, "replicas": replicas})
