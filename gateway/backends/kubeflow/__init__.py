"""Launches gangs as PyTorchJobs on Kubernetes: suspended, gated, pinned to what is reserved."""

from gateway.backends.kubeflow.backend import KubeflowBackend
from gateway.backends.kubeflow.settings import KubeflowSettings

__all__ = ["KubeflowBackend", "KubeflowSettings"]
