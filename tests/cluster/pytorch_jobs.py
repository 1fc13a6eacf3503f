"""PyTorchJobs for tests of the control plane itself, and what opens their gates by hand.

The product renders its own jobs; nothing here is shared with it.
"""

from functools import partial

from tests.cluster.harness.rest import JsonObject, Rest
from tests.cluster.harness.waiting import wait_until

GATE = "tests.training-gateway.io/reservation"
PLACE = "tests.training-gateway.io/place"


def pytorch_job(name: str, workers: int, container: str = "pytorch") -> JsonObject:
    """Give a suspended job whose pods are gated and read one annotation as a variable."""
    template = {
        "spec": {
            "schedulingGates": [{"name": GATE}],
            "containers": [
                {
                    "name": container,
                    "image": "example.invalid/train:1",
                    "env": [
                        field_variable("PLACE", f"metadata.annotations['{PLACE}']"),
                        field_variable("NODE", "spec.nodeName"),
                        field_variable("POD", "metadata.name"),
                        {"name": "GREETING", "value": "$(POD) on $(NODE), $$(NODE) literally"},
                    ],
                    "resources": {"limits": {"nvidia.com/gpu": "8"}},
                }
            ],
        }
    }
    replica = {"restartPolicy": "Never", "template": template}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": name},
        "spec": {
            "runPolicy": {"suspend": True, "cleanPodPolicy": "Running"},
            "pytorchReplicaSpecs": {
                "Master": {"replicas": 1, **replica},
                "Worker": {"replicas": workers, **replica},
            },
        },
    }


def field_variable(name: str, path: str) -> JsonObject:
    """Give a variable that a kubelet fills from a field of the pod."""
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


def jobs_path(namespace: str, name: str = "") -> str:
    """Give the API path of the jobs of a namespace, or of one of them."""
    return f"/apis/kubeflow.org/v1/namespaces/{namespace}/pytorchjobs/{name}".rstrip("/")


def pods_path(namespace: str, name: str = "") -> str:
    """Give the API path of the pods of a namespace, or of one of them."""
    return f"/api/v1/namespaces/{namespace}/pods/{name}".rstrip("/")


def start_gated(rest: Rest, namespace: str, job: JsonObject) -> list[JsonObject]:
    """Create the job suspended, let it go, and give its gated pods by name."""
    name, replicas = job["metadata"]["name"], job["spec"]["pytorchReplicaSpecs"]
    expected = sum(replica["replicas"] for replica in replicas.values())
    rest.create(jobs_path(namespace), job)
    wait_condition(rest, namespace, name, "Suspended")
    rest.merge_patch(jobs_path(namespace, name), {"spec": {"runPolicy": {"suspend": False}}})

    def all_pods() -> list[JsonObject]:
        pods = rest.items(pods_path(namespace))
        return pods if len(pods) == expected else []

    return sorted(wait_until(all_pods, "all pods"), key=lambda pod: str(pod["metadata"]["name"]))


def open_gate(rest: Rest, pod: JsonObject, node: str) -> None:
    """Place a gated pod by the one merge patch the product uses, too."""
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    affinity = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    metadata = pod["metadata"]
    patch = {
        "metadata": {"uid": metadata["uid"], "annotations": {PLACE: f"{node}:0-7"}},
        "spec": {"affinity": {"nodeAffinity": affinity}, "schedulingGates": None},
    }
    rest.merge_patch(pods_path(metadata["namespace"], metadata["name"]), patch)


def wait_phase(rest: Rest, pod: JsonObject, phase: str) -> JsonObject:
    """Wait until the pod of this name has the phase, and give it."""
    metadata = pod["metadata"]
    path = pods_path(metadata["namespace"], metadata["name"])

    def look() -> JsonObject | None:
        found = rest.find(path)
        return found if found and found["status"]["phase"] == phase else None

    return wait_until(look, f"pod {metadata['name']} to be {phase}")


def wait_condition(rest: Rest, namespace: str, job: str, kind: str) -> JsonObject:
    """Wait until the job has a condition of this type that holds, and give the job."""

    def look() -> JsonObject | None:
        found = rest.get(jobs_path(namespace, job))
        conditions = found.get("status", {}).get("conditions") or []
        holds = any(c["type"] == kind and c["status"] == "True" for c in conditions)
        return found if holds else None

    return wait_until(look, f"job {job} to be {kind}")


def wait_gone(rest: Rest, path: str) -> None:
    """Wait until no object is at the path."""
    wait_until(partial(is_missing, rest, path), f"{path} to be gone")


def is_missing(rest: Rest, path: str) -> bool:
    """Say whether there is no object at the path."""
    return rest.find(path) is None


def run_gang(rest: Rest, namespace: str, job: JsonObject, nodes: list[str]) -> list[JsonObject]:
    """Start a gang with one pod on each node and give its running pods."""
    pods = start_gated(rest, namespace, job)
    for pod, node in zip(pods, nodes, strict=True):
        open_gate(rest, pod, node)
    return [wait_phase(rest, pod, "Running") for pod in pods]
