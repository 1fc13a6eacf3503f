"""The jobs that benchmarks submit: a small, ordinary PyTorchJob, told apart by its name."""

import json
from typing import Any


def manifest(name: str) -> dict[str, Any]:
    """Give a PyTorchJob of one Master and one Worker with four GPUs and NICs each."""
    resources = {"cpu": "8", "memory": "64Gi", "nvidia.com/gpu": "4", "rdma/hca": "4"}
    container = {
        "name": "pytorch",
        "image": "registry.example.com/team/train:1.4",
        "command": ["python", "train.py", "--epochs", "3", "--batch-size", "64"],
        "env": [{"name": "NCCL_DEBUG", "value": "WARN"}, {"name": "OMP_NUM_THREADS", "value": "8"}],
        "resources": {"limits": resources, "requests": resources},
    }
    replica = {
        "replicas": 1,
        "restartPolicy": "OnFailure",
        "template": {"spec": {"containers": [container]}},
    }
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": name, "namespace": "team-a"},
        "spec": {"pytorchReplicaSpecs": {"Master": replica, "Worker": replica}},
    }


def single_body(name: str) -> str:
    """Give the body of one submit, as the SDK sends it."""
    return json.dumps({"manifest": manifest(name), "overrides": {}})


def batch_body(names: list[str]) -> str:
    """Give the body of a batch."""
    return json.dumps({"jobs": [{"manifest": manifest(name)} for name in names]})
