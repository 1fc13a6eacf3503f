"""Builds documents for the tests of manifest reading; a test says only what it is about."""

from typing import Any

from gateway.errors import GatewayError
from gateway.manifests import ReadOptions, read_job
from gateway.schemas.job_spec import JobSpec, PodSet

MASTER = "/spec/pytorchReplicaSpecs/Master"
POD = f"{MASTER}/template/spec"
CONTAINER = f"{POD}/containers/0"


def a_container(**fields: Any) -> dict[str, Any]:
    """Give a container named pytorch."""
    return {"name": "pytorch", "image": "registry.example/train:1", **fields}


def a_manifest(
    container: dict[str, Any] | None = None,
    pod: dict[str, Any] | None = None,
    spec: dict[str, Any] | None = None,
    metadata: dict[str, Any] | None = None,
    workers: int = 0,
) -> dict[str, Any]:
    """Give a manifest of one Master and some Workers, all alike."""
    containers = [a_container(**(container or {}))]
    template = {"spec": {"containers": containers, **(pod or {})}}
    replicas: dict[str, Any] = {"Master": {"replicas": 1, "template": template}}
    if workers:
        replicas["Worker"] = {"replicas": workers, "template": template}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": "job", **(metadata or {})},
        "spec": {"pytorchReplicaSpecs": replicas, **(spec or {})},
    }


def annotated(**fields: str) -> dict[str, Any]:
    """Give metadata with annotations of the gateway."""
    return {
        "annotations": {
            f"training-gateway.io/{name.replace('_', '-')}": value for name, value in fields.items()
        }
    }


def read_with(document: dict[str, Any], **overrides: Any) -> JobSpec:
    """Read a document under overrides."""
    return read_job(document, ReadOptions(overrides=overrides))


def master_of(document: dict[str, Any], options: ReadOptions | None = None) -> PodSet:
    """Give the first pod set of a document."""
    return read_job(document, options or ReadOptions()).pod_sets[0]


def refusal_of(document: Any, options: ReadOptions | None = None) -> GatewayError:
    """Give the error that a document is refused with."""
    try:
        spec = read_job(document, options or ReadOptions())
    except GatewayError as error:
        return error
    raise AssertionError(f"accepted: {spec}")
