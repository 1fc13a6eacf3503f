"""Keeps nodes alive as their kubelets would: Lease, Ready condition, address and kubelet port."""

import time
from datetime import UTC, datetime

from tests.cluster.harness.pod_status import stamp
from tests.cluster.harness.rest import JsonObject, Rest

RENEW_SECONDS = 3.0
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"


class NodeHeartbeat:
    """Renews every node of the cluster but the lost ones."""

    def __init__(self, rest: Rest, kubelet_port: int) -> None:
        self._rest = rest
        self._port = kubelet_port
        self._renewed: dict[str, float] = {}
        self.lost: set[str] = set()

    def beat(self) -> None:
        """Look at all nodes once and renew what is due."""
        names = set()
        for node in self._rest.items("/api/v1/nodes", resourceVersion="0"):
            name = node["metadata"]["name"]
            names.add(name)
            if name not in self.lost and self._is_due(name):
                self._renew(node)
        self._renewed = {name: at for name, at in self._renewed.items() if name in names}

    def _is_due(self, name: str) -> bool:
        return time.monotonic() - self._renewed.get(name, float("-inf")) >= RENEW_SECONDS

    def _renew(self, node: JsonObject) -> None:
        name = node["metadata"]["name"]
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        lease = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": name},
            "spec": {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": now},
        }
        self._rest.apply(f"{LEASES}/{name}", lease)
        if not is_ready(node):
            self._rest.strategic_patch(f"/api/v1/nodes/{name}/status", self._ready_status())
        self._renewed[name] = time.monotonic()

    def _ready_status(self) -> JsonObject:
        """Give the whole report of a healthy kubelet."""
        healthy = {"MemoryPressure": "False", "DiskPressure": "False", "PIDPressure": "False"}
        return {
            "status": {
                "conditions": [
                    {
                        "type": kind,
                        "status": status,
                        "reason": "KubeletReady",
                        "lastHeartbeatTime": stamp(),
                        "lastTransitionTime": stamp(),
                    }
                    for kind, status in {**healthy, "Ready": "True"}.items()
                ],
                "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
                "daemonEndpoints": {"kubeletEndpoint": {"Port": self._port}},
                "nodeInfo": node_info(),
            }
        }


def is_ready(node: JsonObject) -> bool:
    """Say whether the node's Ready condition holds."""
    conditions = node["status"].get("conditions", [])
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


def node_info() -> JsonObject:
    """Give the facts about a machine that the API insists on."""
    blank = ("machineID", "systemUUID", "bootID", "kernelVersion", "osImage", "kubeProxyVersion")
    return {
        **dict.fromkeys(blank, ""),
        "containerRuntimeVersion": "fake://1",
        "kubeletVersion": "v0.0.0-fake",
        "operatingSystem": "linux",
        "architecture": "amd64",
    }
