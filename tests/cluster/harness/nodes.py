"""Makes Node objects as a GPU machine's kubelet would register them."""

from dataclasses import dataclass, field
from typing import Any

from tests.cluster.harness.rest import JsonObject, Rest

GPU_RESOURCE = "nvidia.com/gpu"
NIC_RESOURCE = "rdma/hca"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeShape:
    """What a node offers; the defaults are a common eight-GPU machine."""

    gpus: int = 8
    nics: int = 8
    cpu: str = "128"
    memory: str = "1Ti"
    pods: int = 110
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    taints: tuple[dict[str, Any], ...] = ()
    resources: dict[str, str] = field(default_factory=dict)
    """Further extended resources, such as {"nvidia.com/mig-1g.5gb": "7"}."""


def make_node(rest: Rest, name: str, shape: NodeShape | None = None) -> JsonObject:
    """Create a node; it gets Ready only while a fake kubelet runs.

    Raises:
        Refused: the name is taken, among others.
    """
    return rest.create("/api/v1/nodes", node_object(name, shape or NodeShape()))


def node_object(name: str, shape: NodeShape) -> JsonObject:
    """Give the Node as it is sent."""
    amounts = {
        "cpu": shape.cpu,
        "memory": shape.memory,
        "pods": str(shape.pods),
        GPU_RESOURCE: str(shape.gpus),
        NIC_RESOURCE: str(shape.nics),
        **shape.resources,
    }
    labels = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", **shape.labels}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels, "annotations": shape.annotations},
        "spec": {"taints": list(shape.taints)},
        "status": {"capacity": amounts, "allocatable": amounts},
    }


def is_usable(node: JsonObject) -> bool:
    """Say whether the node is Ready and no taint of the node controller is left on it."""
    conditions = {c["type"]: c["status"] for c in node["status"].get("conditions", [])}
    taints = [taint["key"] for taint in node["spec"].get("taints", [])]
    return conditions.get("Ready") == "True" and not any(
        key.startswith("node.kubernetes.io/") for key in taints
    )
