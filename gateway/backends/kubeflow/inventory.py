"""Turns nodes and the pods on them into what the fleet looks like. Pure.

What pods of others take is foreign use: their amounts are counted, and where they use devices whose
ids nobody knows, every device that it could be counts as taken.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from gateway.backends.base import DeviceSeen, NodeSeen
from gateway.backends.kubeflow.devices import devices_of, machine_type_of
from gateway.backends.kubeflow.json_paths import (
    Json,
    at,
    entry_with,
    items_at,
    mapping_at,
    text_at,
    texts_at,
)
from gateway.backends.kubeflow.names import JOB_ID_LABEL, KIND, is_gpu, is_rdma
from gateway.backends.kubeflow.replicas import condition
from gateway.backends.kubeflow.requests import (
    Requests,
    amounts_of,
    effective_requests,
    total_of,
    without_devices,
)
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

    amounts: Counter[str] = field(default_factory=Counter)
    has_gpu: bool = False
    has_rdma: bool = False

    def add(self, requests: Requests) -> None:
        """Count one pod."""
        self.has_gpu |= total_of(requests, is_gpu) > 0
        self.has_rdma |= total_of(requests, is_rdma) > 0
        self.amounts[PODS] += 1
        self.amounts.update(without_devices(requests))


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
    return entry_with(owners, kind=KIND) is not None


def _foreign_use(pods: Sequence[Json]) -> dict[str, _Use]:
    use: dict[str, _Use] = defaultdict(_Use)
    for pod in filter(_is_foreign, pods):
        use[text_at(pod, "spec", "nodeName")].add(effective_requests(pod))
    return use


def _is_foreign(pod: Json) -> bool:
    return text_at(pod, "status", "phase") not in ENDED and not is_own_pod(pod)


def _node(node: Json, use: _Use) -> NodeSeen:
    allocatable = amounts_of(mapping_at(node, "status", "allocatable"))
    return NodeSeen(
        name=text_at(node, "metadata", "name"),
        uid=text_at(node, "metadata", "uid"),
        machine_type=machine_type_of(node),
        health=_health(node),
        labels=texts_at(node, "metadata", "labels"),
        taints=_taints(node),
        total=without_devices(allocatable),
        foreign=dict(use.amounts),
        devices=tuple(_mark(device, use) for device in devices_of(node, allocatable)),
    )


def _mark(device: DeviceSeen, use: _Use) -> DeviceSeen:
    """A foreign pod with a GPU may use any GPU and, over it, any NIC of the node."""
    # Which id a device plugin granted is known to that node's kubelet alone (PodResources).
    is_taken = use.has_gpu or (use.has_rdma and device.kind is DeviceKind.RDMA)
    return replace(device, is_foreign=True) if is_taken else device


def _health(node: Json) -> DeviceHealth:
    # Unknown counts as well: so the node controller marks a kubelet that fell silent.
    if condition(node, "Ready") is None:
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
