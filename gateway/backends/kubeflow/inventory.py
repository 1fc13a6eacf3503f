"""Turns nodes and the pods on them into what the fleet looks like. Pure.

What pods of others take is foreign use: their amounts are counted, and where they use devices whose
ids nobody knows, every device that it could be counts as taken.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from gateway.backends.base import DeviceSeen, NodeSeen
from gateway.backends.kubeflow.devices import devices_of, machine_type_of
from gateway.backends.kubeflow.json_paths import Json, at, items_at, mapping_at, text_at, texts_at
from gateway.backends.kubeflow.names import JOB_ID_LABEL, KIND, is_gpu, is_rdma
from gateway.backends.kubeflow.requests import Requests, amounts_of, effective_requests
from gateway.core.resources import PODS
from gateway.core.vocabulary import DeviceHealth, DeviceKind

ENDED: Final = frozenset({"Succeeded", "Failed"})
HEALTH_TAINTS: Final = frozenset(
    {
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
        "node.kubernetes.io/unschedulable",
    }
)
"""Taints that repeat what `health` says."""


@dataclass(slots=True)
class _Use:
    """What pods of others take of one node."""

    amounts: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    has_gpu: bool = False
    has_rdma: bool = False

    def add(self, requests: Requests) -> None:
        """Count one pod."""
        self.amounts[PODS] += 1
        for resource, amount in requests.items():
            if is_gpu(resource):
                self.has_gpu |= amount > 0
            elif is_rdma(resource):
                self.has_rdma |= amount > 0
            else:
                self.amounts[resource] += amount


def nodes_seen(nodes: Sequence[Json], pods: Sequence[Json]) -> list[NodeSeen]:
    """Give every node with health, devices and foreign use, by name."""
    use = _foreign_use(pods)
    found = [_node(node, use[text_at(node, "metadata", "name")]) for node in nodes]
    return sorted(found, key=lambda node: node.name)


def is_own_pod(pod: Json) -> bool:
    """Whether the gateway launched a pod; the label alone could be anybody's."""
    if not texts_at(pod, "metadata", "labels").get(JOB_ID_LABEL):
        return False
    owners = items_at(pod, "metadata", "ownerReferences")
    return any(text_at(owner, "kind") == KIND for owner in owners)


def _foreign_use(pods: Sequence[Json]) -> dict[str, _Use]:
    use: dict[str, _Use] = defaultdict(_Use)
    for pod in pods:
        if text_at(pod, "status", "phase") not in ENDED and not is_own_pod(pod):
            use[text_at(pod, "spec", "nodeName")].add(effective_requests(pod))
    return use


def _node(node: Json, use: _Use) -> NodeSeen:
    allocatable = amounts_of(mapping_at(node, "status", "allocatable"))
    return NodeSeen(
        name=text_at(node, "metadata", "name"),
        uid=text_at(node, "metadata", "uid"),
        machine_type=machine_type_of(node),
        health=_health(node),
        labels=texts_at(node, "metadata", "labels"),
        taints=_taints(node),
        total={
            name: amount
            for name, amount in allocatable.items()
            if not is_gpu(name) and not is_rdma(name)
        },
        foreign=dict(use.amounts),
        devices=tuple(_mark(device, use) for device in devices_of(node, allocatable)),
    )


def _mark(device: DeviceSeen, use: _Use) -> DeviceSeen:
    """A foreign pod with a GPU may use any GPU and, over it, any NIC of the node."""
    is_taken = use.has_gpu or (use.has_rdma and device.kind is DeviceKind.RDMA)
    return replace(device, is_foreign=True) if is_taken else device


def _health(node: Json) -> DeviceHealth:
    is_ready = any(
        text_at(entry, "type") == "Ready" and text_at(entry, "status") == "True"
        for entry in items_at(node, "status", "conditions")
    )
    if not is_ready:
        return DeviceHealth.UNHEALTHY
    if at(node, "spec", "unschedulable") is True:
        return DeviceHealth.CORDONED
    return DeviceHealth.HEALTHY


def _taints(node: Json) -> tuple[tuple[str, str, str], ...]:
    return tuple(
        (text_at(taint, "key"), text_at(taint, "value"), text_at(taint, "effect"))
        for taint in items_at(node, "spec", "taints")
        if text_at(taint, "key") not in HEALTH_TAINTS
    )
