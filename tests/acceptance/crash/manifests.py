"""The two jobs of a sweep, as files: one that ends soon by itself, one that runs until stopped."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gateway.core.vocabulary import JobState


def write_manifests(
    folder: Path, short: Mapping[str, Any], long: Mapping[str, Any]
) -> dict[JobState, Path]:
    """Write a job for each end; gives where they lie."""
    paths = {}
    for end, template in ((JobState.SUCCEEDED, short), (JobState.CANCELLED, long)):
        paths[end] = folder / f"{end.value}.json"
        paths[end].write_text(json.dumps(template))
    return paths


def a_gang(
    command: list[str] | None = None, annotations: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Give a Master and a Worker with two GPUs and two NICs each."""
    container: dict[str, Any] = {
        "name": "pytorch",
        "image": "registry.example/train:1",
        "resources": {
            "requests": {"cpu": "1", "memory": "1Gi"},
            "limits": {"nvidia.com/gpu": 2, "rdma/hca": 2},
        },
    }
    if command:
        container["command"] = command
    replica = {
        "replicas": 1,
        "restartPolicy": "Never",
        "template": {"spec": {"containers": [container]}},
    }
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {
            "name": "survivor",
            "namespace": "team-a",
            "annotations": dict(annotations or {}),
        },
        "spec": {"pytorchReplicaSpecs": {"Master": replica, "Worker": replica}},
    }
