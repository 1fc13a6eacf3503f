"""One-line launches for the tests of launch back ends."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from gateway.backends.base import DeviceSeen, Launch, NodeSeen, PlannedDevice, PlannedPod
from gateway.core.resources.node_rules import Toleration
from gateway.core.vocabulary import DeviceKind

DIGEST = "ab" * 32
KEPT_OUT = Toleration(key="pool", value="training", effect="NoSchedule")
"""What a flavor says whose nodes nobody else may use."""


def a_manifest(
    workers: int = 1,
    command: Sequence[str] = (),
    *,
    annotations: Mapping[str, str] | None = None,
    restart_policy: str = "Never",
    env: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Give a PyTorchJob with a Master and this many Workers."""
    container: dict[str, Any] = {"name": "pytorch", "image": "registry.example/train:1"}
    if command:
        container["command"] = list(command)
    if env:
        container["env"] = [{"name": name, "value": value} for name, value in env.items()]

    def replicas(count: int) -> dict[str, Any]:
        return {
            "replicas": count,
            "restartPolicy": restart_policy,
            "template": {"spec": {"containers": [container]}},
        }

    sets = {"Master": replicas(1)} | ({"Worker": replicas(workers)} if workers else {})
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": "digits", "annotations": dict(annotations or {})},
        "spec": {"pytorchReplicaSpecs": sets},
    }


def a_launch(
    manifest: Mapping[str, Any] | None = None,
    *,
    name: str = "digits-ab12-1",
    nodes: Sequence[NodeSeen] = (),
    namespace: str = "default",
    digest: str = DIGEST,
) -> Launch:
    """Give the first attempt of a job, each pod on a node with a GPU and a NIC of its own."""
    document = manifest or a_manifest()
    sets = document["spec"]["pytorchReplicaSpecs"]
    pods = [(kind, i) for kind in ("Master", "Worker") for i in range(_count(sets, kind))]
    return Launch(
        job_id=f"job-{name}",
        attempt=1,
        namespace=namespace,
        object_name=name,
        epoch=1,
        spec_digest=digest,
        manifest=document,
        pods=tuple(_pod(kind, index, rank, nodes) for rank, (kind, index) in enumerate(pods)),
    )


def _count(sets: Mapping[str, Any], kind: str) -> int:
    return int(sets[kind]["replicas"]) if kind in sets else 0


def _pod(kind: str, index: int, rank: int, nodes: Sequence[NodeSeen]) -> PlannedPod:
    if not nodes:
        return PlannedPod(pod_set=kind, index=index, rank=rank, node="dgx-h100-0")
    node = nodes[rank % len(nodes)]
    turn = rank // len(nodes)
    devices = [
        planned(device)
        for device_kind in DeviceKind
        for device in [d for d in node.devices if d.kind is device_kind][turn : turn + 1]
    ]
    return PlannedPod(
        pod_set=kind, index=index, rank=rank, node=node.name, devices=tuple(devices), cpu_millis=500
    )


def tolerating(launch: Launch, *tolerations: Toleration) -> Launch:
    """Give a launch as it is planned under a flavor with these tolerations."""
    pods = tuple(replace(pod, tolerations=tolerations) for pod in launch.pods)
    return replace(launch, pods=pods)


def planned(device: DeviceSeen) -> PlannedDevice:
    """Give a device of the inventory as a plan names it."""
    return PlannedDevice(
        kind=device.kind,
        ordinal=device.ordinal,
        name=device.name,
        uuid=device.uuid,
        pci_address=device.pci_address,
        numa=device.numa,
        rail=device.rail,
    )
