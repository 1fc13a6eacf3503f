"""Which replica a pod is, and in which phase. Pure; nothing that a pod says makes it raise."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from gateway.backends.base import GONE_PHASES, Launch, PlannedPod, ReplicaPhase, ReplicaSeen
from gateway.backends.kubeflow.json_paths import (
    Json,
    at,
    items_at,
    mapping_at,
    text_at,
    texts_at,
    whole_at,
)
from gateway.backends.kubeflow.names import (
    MAIN_CONTAINER,
    REPLICA_INDEX_LABEL,
    REPLICA_TYPE_LABEL,
)
from gateway.core.vocabulary import SCHEDULING_GATE

MOST_MESSAGE: Final = 300
UNKNOWN_INDEX: Final = -1
ENDED: Final = {"Succeeded": ReplicaPhase.SUCCEEDED, "Failed": ReplicaPhase.FAILED}
INFRASTRUCTURE_REASONS: Final = frozenset(
    {
        "Evicted",
        "NodeLost",
        "NodeShutdown",
        "Shutdown",
        "Terminated",
        "NodeAffinity",
        "UnexpectedAdmissionError",
    }
)
"""Pod reasons by which the cluster, not the training, ended it."""


@dataclass(frozen=True, slots=True)
class Place:
    """A replica's name inside its gang."""

    pod_set: str
    index: int


def place_of(pod: Json) -> Place:
    """Give the replica that a pod is; one whose labels make no sense has UNKNOWN_INDEX."""
    labels = texts_at(pod, "metadata", "labels")
    index = labels.get(REPLICA_INDEX_LABEL, "")
    is_number = index.isascii() and index.isdigit() and len(index) < 8  # noqa: PLR2004 - digits
    pod_set = labels.get(REPLICA_TYPE_LABEL, "").capitalize()
    return Place(pod_set, int(index) if is_number and pod_set else UNKNOWN_INDEX)


def plan_of(launch: Launch) -> dict[Place, PlannedPod]:
    """Give the reservation of each replica."""
    return {Place(pod.pod_set, pod.index): pod for pod in launch.pods}


def has_gate(pod: Json) -> bool:
    """Whether the gateway's gate is still closed."""
    gates = items_at(pod, "spec", "schedulingGates")
    return any(text_at(gate, "name") == SCHEDULING_GATE for gate in gates)


def is_leaving(pod: Json) -> bool:
    """Whether the pod was asked to go."""
    return bool(text_at(pod, "metadata", "deletionTimestamp"))


def phase_of(pod: Json) -> ReplicaPhase:
    """Give the phase; a pod that ended uses nothing even while its object is being deleted."""
    phase = text_at(pod, "status", "phase")
    if phase in ENDED:
        return ENDED[phase]
    if is_leaving(pod):
        return ReplicaPhase.TERMINATING
    if has_gate(pod):
        return ReplicaPhase.GATED
    if phase in {"Running", "Unknown"}:
        return ReplicaPhase.READY if _is_ready(pod) else ReplicaPhase.RUNNING
    return ReplicaPhase.PENDING


def is_alive(pod: Json) -> bool:
    """Whether the pod has neither ended nor been asked to."""
    return phase_of(pod) not in {*GONE_PHASES, ReplicaPhase.TERMINATING}


def replica_of(pod: Json) -> ReplicaSeen:
    """Give what is seen of a pod."""
    place = place_of(pod)
    return ReplicaSeen(
        pod_set=place.pod_set,
        index=place.index,
        phase=phase_of(pod),
        uid=text_at(pod, "metadata", "uid"),
        node=text_at(pod, "spec", "nodeName"),
        exit_code=whole_at(_main_status(pod), "state", "terminated", "exitCode"),
        message=_message(pod),
    )


def restarts_of(pod: Json) -> int:
    """Give how often the kubelet restarted the training container in place."""
    return max(0, whole_at(_main_status(pod), "restartCount") or 0)


def was_ended_by_cluster(pod: Json) -> bool:
    """Whether a failed pod was evicted, lost or shut down rather than failing by itself."""
    if text_at(pod, "status", "reason") in INFRASTRUCTURE_REASONS:
        return True
    return any(
        text_at(entry, "type") == "DisruptionTarget" and text_at(entry, "status") == "True"
        for entry in items_at(pod, "status", "conditions")
    )


def in_order(replicas: Iterable[ReplicaSeen]) -> tuple[ReplicaSeen, ...]:
    """Sort by pod set and index."""
    return tuple(sorted(replicas, key=lambda seen: (seen.pod_set, seen.index, seen.uid)))


def _is_ready(pod: Json) -> bool:
    return any(
        text_at(entry, "type") == "Ready" and text_at(entry, "status") == "True"
        for entry in items_at(pod, "status", "conditions")
    )


def _main_status(pod: Json) -> Json:
    statuses = items_at(pod, "status", "containerStatuses")
    return next((entry for entry in statuses if at(entry, "name") == MAIN_CONTAINER), {})


def _message(pod: Json) -> str:
    """Give the most telling words of a pod's status, trimmed."""
    state = mapping_at(_main_status(pod), "state")
    parts: list[str] = []
    for holder in (
        mapping_at(pod, "status"),
        mapping_at(state, "waiting"),
        mapping_at(state, "terminated"),
    ):
        for key in ("reason", "message"):
            words = text_at(holder, key)
            if words and words not in parts:
                parts.append(words)
    return ": ".join(parts)[:MOST_MESSAGE]
