"""What stands in an attempt's folder, as values: the launch, the supervisor, the gang's status.

Values and their JSON only; `folder` knows the files, `gang` what changes them.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from gateway.backends.base import ObjectOutcome, ReplicaPhase
from gateway.backends.local.liveness import Running
from gateway.backends.local.program import Program
from gateway.backends.local.rendezvous import Rendezvous

ORPHANED = "orphaned"
STOPPED = "stopped"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaRecord:
    """One replica to be run."""

    pod_set: str
    index: int
    rank: int
    node: str
    program: Program


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchRecord:
    """Everything a supervisor must know; written once, at create."""

    uid: str
    identity: str
    """Job, attempt and digest: what makes an object this attempt's own."""
    namespace: str
    name: str
    rendezvous: Rendezvous
    replicas: tuple[ReplicaRecord, ...]
    heartbeat_file: str
    orphan_seconds: float
    most_restarts: int

    def to_json(self) -> dict[str, Any]:
        """Give its JSON document."""
        return asdict(self)

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> "LaunchRecord":
        """Read what `to_json` gave; raises KeyError or TypeError for anything else."""
        replicas = tuple(_replica_from(entry) for entry in document["replicas"])
        rendezvous = Rendezvous(**document["rendezvous"])
        return cls(**{**document, "replicas": replicas, "rendezvous": rendezvous})


@dataclass(slots=True, kw_only=True)
class ReplicaStatus:
    """One replica as its supervisor last knew it."""

    pod_set: str
    index: int
    rank: int
    node: str
    generation: int = 0
    """How often it was re-created."""
    phase: ReplicaPhase = ReplicaPhase.GATED
    running: Running | None = None
    exit_code: int | None = None
    message: str = ""


@dataclass(slots=True, kw_only=True)
class GangStatus:
    """The gang as its supervisor last knew it."""

    replicas: list[ReplicaStatus] = field(default_factory=list)
    outcome: str = ObjectOutcome.UNDECIDED.value
    """An ObjectOutcome, ORPHANED or STOPPED."""
    recreations: int = 0
    message: str = ""
    is_final: bool = False
    """Nothing of it runs any more and the supervisor is about to end."""

    def to_json(self) -> dict[str, Any]:
        """Give its JSON document."""
        return asdict(self)

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> "GangStatus":
        """Read what `to_json` gave."""
        return cls(**{**document, "replicas": [_status_from(r) for r in document["replicas"]]})


def _replica_from(entry: Mapping[str, Any]) -> ReplicaRecord:
    program = dict(entry["program"])
    # JSON knows no tuples, and a record must equal the one that was written.
    program["command"] = tuple(program["command"])
    program["environment"] = tuple((name, value) for name, value in program["environment"])
    return ReplicaRecord(**{**entry, "program": Program(**program)})


def _status_from(entry: Mapping[str, Any]) -> ReplicaStatus:
    running = Running(**entry["running"]) if entry["running"] else None
    return ReplicaStatus(**{**entry, "phase": ReplicaPhase(entry["phase"]), "running": running})
