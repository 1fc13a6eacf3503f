"""The gateway's back end beside the test cluster, with the identity and roles that deploy/ ships.

Nothing here gives the product a right that a real installation would not have.
"""

import itertools
import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from gateway.backends.base import Launch, LaunchBackend, NodeSeen
from gateway.backends.kubeflow import KubeflowBackend, KubeflowSettings
from gateway.backends.kubeflow.names import pod_name
from tests.cluster.harness.cluster import Cluster
from tests.cluster.harness.nodes import NodeShape
from tests.cluster.harness.rest import JsonObject, load_documents
from tests.cluster.harness.scripts import PodScript
from tests.cluster.harness.waiting import wait_until
from tests.contract.backends.harness import Kind
from tests.contract.backends.launches import KEPT_OUT, a_launch, a_manifest, tolerating

DEPLOY = Path(__file__).parents[2] / "deploy"
ACCOUNT = "training-gateway"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
COLLECTIONS = {
    "Namespace": "/api/v1/namespaces",
    "ServiceAccount": f"/api/v1/namespaces/{ACCOUNT}/serviceaccounts",
    "ClusterRole": f"{RBAC}/clusterroles",
    "ClusterRoleBinding": f"{RBAC}/clusterrolebindings",
    "PriorityClass": "/apis/scheduling.k8s.io/v1/priorityclasses",
}
MACHINE = NodeShape(labels={"training-gateway.io/machine-type": "dgx-h100"})
FAILING_CODE = 3


def install(cluster: Cluster) -> None:
    """Apply deploy/base as `kubectl apply -k` would."""
    for name in load_documents(DEPLOY / "base" / "kustomization.yaml")[0]["resources"]:
        for document in load_documents(DEPLOY / "base" / name):
            path = f"{COLLECTIONS[document['kind']]}/{document['metadata']['name']}"
            cluster.rest.apply(path, document)


def bind(cluster: Cluster, namespace: str) -> str:
    """Let the gateway run jobs in a namespace; gives the path of the RoleBinding."""
    [binding] = load_documents(DEPLOY / "job-namespace" / "role-binding.yaml")
    path = f"{RBAC}/namespaces/{namespace}/rolebindings/{binding['metadata']['name']}"
    cluster.rest.apply(path, binding)
    return path


class World:
    """One namespace, some nodes, and back ends that act in them as the gateway does.

    Also the conformance suite's harness: pods play the script that `launch` writes for them.
    """

    failing_code = FAILING_CODE

    def __init__(
        self, cluster: Cluster, namespace: str, nodes: Sequence[str], folder: Path
    ) -> None:
        """Install the roles and make credentials; `nodes` are those that plans name."""
        install(cluster)
        self.role_binding = bind(cluster, namespace)
        self.cluster = cluster
        self.namespace = namespace
        self.node_names = tuple(nodes)
        self.kubeconfig = cluster.plane.kubeconfig_for_account(
            ACCOUNT, ACCOUNT, folder / "gateway.kubeconfig"
        )
        self._numbers = itertools.count(1)

    def settings(self) -> KubeflowSettings:
        """Give the settings of a back end in this world."""
        return KubeflowSettings(
            kubeconfig=self.kubeconfig, namespaces=(self.namespace,), priority_class=ACCOUNT
        )

    def make_backend(self) -> LaunchBackend:
        """Give a new back end with the shipped ServiceAccount's token."""
        return KubeflowBackend(self.settings())

    def fleet(self) -> list[NodeSeen]:
        """Give this test's nodes as the back end's inventory lists them."""
        seen = self.make_backend().inventory()
        return [node for node in seen if node.name in self.node_names]

    def launch_of(self, manifest: Mapping[str, Any], name: str = "train") -> Launch:
        """Describe a launch of a manifest on this world's nodes, under a name of its own."""
        full = f"{name}-{next(self._numbers)}-{secrets.token_hex(3)}"
        return a_launch(manifest, name=full, nodes=self.fleet(), namespace=self.namespace)

    def launch(self, kind: Kind, *, workers: int = 1) -> Launch:
        """Describe a gang and script what its pods do."""
        manifest = a_manifest(
            workers, restart_policy="OnFailure" if kind is Kind.RESTARTING else "Never"
        )
        if kind is Kind.REJECTED:
            for replica in manifest["spec"]["pytorchReplicaSpecs"].values():
                replica["template"]["spec"]["containers"][0]["name"] = "not-pytorch"
        launch = self.launch_of(manifest, str(kind))
        for pod in launch.pods:
            fails = kind is Kind.FAILING and pod.rank == len(launch.pods) - 1
            self.cluster.kubelet.script(
                PodScript(
                    job=re.escape(launch.object_name),
                    replica_type=pod.pod_set.lower(),
                    index=pod.index,
                    run_seconds=1.0 if fails or kind is Kind.SUCCEEDING else None,
                    exit_codes=(FAILING_CODE if fails else 0,),
                    lines=(self.log_line(launch, pod.rank), "and one more"),
                )
            )
        return launch

    def keep_out(self, launch: Launch) -> Launch:
        """Taint the nodes of a launch."""
        taint = {"key": KEPT_OUT.key, "value": KEPT_OUT.value, "effect": KEPT_OUT.effect}
        for node in {pod.node for pod in launch.pods}:
            self.cluster.rest.merge_patch(f"/api/v1/nodes/{node}", {"spec": {"taints": [taint]}})
        return tolerating(launch, KEPT_OUT)

    def let_in(self) -> None:
        """Take every taint off the nodes: those that tests share must end as they began."""
        for node in self.node_names:
            self.cluster.rest.merge_patch(f"/api/v1/nodes/{node}", {"spec": {"taints": None}})

    def finish(self, launch: Launch, rank: int, exit_code: int = 0) -> None:
        """Let a running replica end."""
        self.cluster.kubelet.finish(self.namespace, self.pod_name(launch, rank), exit_code)

    def recreate(self, launch: Launch, rank: int) -> None:
        """Delete a pod as a node drain would; the operator makes it anew."""
        self.cluster.rest.delete(self.pod_path(launch, rank))

    def delete_externally(self, launch: Launch) -> None:
        """Delete the PyTorchJob as a user would."""
        self.cluster.rest.delete(self.job_path(launch))

    def plant_foreign(self, launch: Launch) -> str:
        """Create a stranger's PyTorchJob of this name."""
        manifest = a_manifest()
        manifest["metadata"] = {"name": launch.object_name, "namespace": launch.namespace}
        manifest["spec"]["runPolicy"] = {"suspend": True}
        collection = self.job_path(launch).rpartition("/")[0]
        return str(self.cluster.rest.create(collection, manifest)["metadata"]["uid"])

    def uid_in_cluster(self, launch: Launch) -> str | None:
        """Give the uid of whatever has this name."""
        found = self.cluster.rest.find(self.job_path(launch))
        return found["metadata"]["uid"] if found else None

    def has_started(self, launch: Launch) -> bool:
        """Whether any pod was bound to a node."""
        return any(pod["spec"].get("nodeName") for pod in self.pods(launch))

    def environment_of(self, launch: Launch, rank: int) -> Mapping[str, str]:
        """Give what the kubelet resolved for the pod that exists now."""
        uid = self.pod(launch, rank)["metadata"]["uid"]
        found = wait_until(
            lambda: self.cluster.kubelet.environment_of(uid),
            f"rank {rank} to start",
            swallow=(KeyError,),
        )
        return {key: value for key, value in found.items() if key.startswith("TRAINING_GATEWAY_")}

    def log_line(self, launch: Launch, rank: int) -> str:
        """Give the first line that a rank prints."""
        return f"rank {rank} of {launch.object_name}"

    def pass_time(self) -> None:
        """Give operator, scheduler and kubelet the time to do what they should not."""
        moments = iter(range(9))
        wait_until(lambda: next(moments) == 8, "nearly a second to pass")

    def wait_until(
        self, predicate: Callable[[], bool], what: str, *, timeout_seconds: float = 15
    ) -> None:
        """Wait for something; the cluster of a busy machine gets twice the time."""
        wait_until(predicate, what, 2 * timeout_seconds)

    def pod_name(self, launch: Launch, rank: int) -> str:
        """Give the name of a rank's pod."""
        planned = launch.pods[rank]
        return pod_name(launch.object_name, planned.pod_set, planned.index)

    def pod_path(self, launch: Launch, rank: int) -> str:
        """Give the path of a rank's pod."""
        return f"/api/v1/namespaces/{launch.namespace}/pods/{self.pod_name(launch, rank)}"

    def pod(self, launch: Launch, rank: int) -> JsonObject:
        """Read a rank's pod with the tests' own eyes."""
        return self.cluster.rest.get(self.pod_path(launch, rank))

    def pods(self, launch: Launch) -> list[JsonObject]:
        """Read all pods of a launch."""
        selector = f"training.kubeflow.org/job-name={launch.object_name}"
        path = f"/api/v1/namespaces/{launch.namespace}/pods"
        return self.cluster.rest.items(path, labelSelector=selector)

    def job_path(self, launch: Launch) -> str:
        """Give the path of a launch's PyTorchJob."""
        stem = f"/apis/kubeflow.org/v1/namespaces/{launch.namespace}/pytorchjobs"
        return f"{stem}/{launch.object_name}"
