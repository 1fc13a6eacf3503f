"""The environment in which the replicas of one gang find each other.

The names and rules are the training-operator's (v1.9, PyTorchJob): what a pod would get, with this
machine's loopback in place of the Master's service. Pure.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

LOOPBACK: Final = "127.0.0.1"
MASTER: Final = "Master"
WORKER: Final = "Worker"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendezvous:
    """What decides the variables, read from one PyTorchJob."""

    has_master: bool
    replicas: int
    processes_per_node: str
    elastic: Mapping[str, Any] | None


def read_rendezvous(manifest: Mapping[str, Any]) -> Rendezvous:
    """Read a PyTorchJob; what is absent takes the operator's default."""
    spec = manifest["spec"]
    sets = spec["pytorchReplicaSpecs"]
    elastic = spec.get("elasticPolicy")
    per_node = spec.get("nprocPerNode") or (elastic or {}).get("nProcPerNode") or "auto"
    return Rendezvous(
        has_master=MASTER in sets,
        replicas=sum(int(replicas.get("replicas", 1)) for replicas in sets.values()),
        processes_per_node=str(per_node),
        elastic=elastic,
    )


def rendezvous_environment(gang: Rendezvous, rank: int, port: int) -> dict[str, str]:
    """Give what the operator would add to the environment of the replica of this rank."""
    environment = {
        "PYTHONUNBUFFERED": "1",
        "PET_NPROC_PER_NODE": gang.processes_per_node,
        "PET_NNODES": _nodes(gang),
    }
    if gang.has_master:
        environment |= _master(gang, rank, port)
    if gang.elastic is not None:
        environment |= _elastic(gang.elastic, port)
    return environment


def _master(gang: Rendezvous, rank: int, port: int) -> dict[str, str]:
    per_node = gang.processes_per_node
    # As the operator does: "auto", "cpu" and "gpu" are torchrun's to resolve and count as one.
    factor = int(per_node) if per_node.isdecimal() else 1
    return {
        "MASTER_ADDR": LOOPBACK,
        "MASTER_PORT": str(port),
        "PET_MASTER_ADDR": LOOPBACK,
        "PET_MASTER_PORT": str(port),
        "WORLD_SIZE": str(gang.replicas * factor),
        "RANK": str(rank),
        "PET_NODE_RANK": str(rank),
    }


def _nodes(gang: Rendezvous) -> str:
    if gang.elastic is None:
        return str(gang.replicas)
    least = gang.elastic.get("minReplicas", gang.replicas)
    most = gang.elastic.get("maxReplicas", gang.replicas)
    return f"{least}:{most}"


def _elastic(policy: Mapping[str, Any], port: int) -> dict[str, str]:
    environment = {
        # A host of the user's choosing is not on this machine; the port stays free of others.
        "PET_RDZV_ENDPOINT": f"{LOOPBACK}:{port}",
        "PET_RDZV_BACKEND": str(policy.get("rdzvBackend", "c10d")),
    }
    for field, name in (("maxRestarts", "PET_MAX_RESTARTS"), ("rdzvId", "PET_RDZV_ID")):
        if field in policy:
            environment[name] = str(policy[field])
    if policy.get("rdzvConf"):
        environment["PET_RDZV_CONF"] = ",".join(
            f"{entry.get('key', '')}={entry.get('value', '')}" for entry in policy["rdzvConf"]
        )
    # torchrun reads the presence of the variable; the operator leaves its value empty.
    if policy.get("standalone"):
        environment["PET_STANDALONE"] = ""
    return environment
