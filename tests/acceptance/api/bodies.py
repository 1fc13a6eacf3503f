"""Manifests as users send them."""

from typing import Any


def a_manifest(
    name: str = "train", gpu: int = 8, workers: int = 0, **script: Any
) -> dict[str, Any]:
    """Give a PyTorchJob of team-a; `script` is what the virtual cluster does with it."""
    limits = {"cpu": "4", "memory": "16Gi", "nvidia.com/gpu": str(gpu), "rdma/ib": str(gpu)}
    container = {
        "name": "pytorch",
        "image": "registry.example/train:1",
        "command": ["python", "train.py"],
        "resources": {"limits": limits},
    }
    replicas = {"Master": 1} | ({"Worker": workers} if workers else {})
    annotations = {
        f"simulated.training-gateway.io/{key.replace('_', '-')}": str(value)
        for key, value in script.items()
    }
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": name, "namespace": "team-a", "annotations": annotations},
        "spec": {
            "pytorchReplicaSpecs": {
                kind: {
                    "replicas": count,
                    "restartPolicy": "Never",
                    "template": {"spec": {"containers": [container]}},
                }
                for kind, count in replicas.items()
            }
        },
    }
