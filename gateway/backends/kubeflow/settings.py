"""What the back end has to be told. Values only."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeflowSettings:
    """How to reach the cluster and what to do in it."""

    kubeconfig: Path | None = None
    """Credentials; None is the service account of the pod that the gateway runs in."""
    namespaces: tuple[str, ...] = ()
    """Namespaces that jobs are launched into; the doctor checks the permissions in each."""
    priority_class: str = ""
    """PriorityClass of all pods; empty leaves what the user wrote or the cluster's default."""
    call_seconds: float = 5.0
    """Longest time of one call, over all its requests; the leader's lease outlives it."""
    log_idle_seconds: float = 30.0
    """A followed log that is silent for so long is asked for again."""
