"""Which replica a pod is, and in which phase. Pure; nothing that a pod says makes it raise."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from gateway.backends.base import GONE_PHASES, Launch, PlannedPod, ReplicaPhase, ReplicaSeen
from gateway.backends.kubeflow.json_paths import (
    Json,
    entry_with,
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
# ASCII and short: int() takes other scripts' digits, and raises beyond 4300 of them.
INDEX: Final = re.compile("[0-9]{1,7}")
ENDED: Final = {"Succeeded": ReplicaPhase.SUCCEEDED, "Failed": ReplicaPhase.FAILED}
# Evicted: the kubelet under pressure. NodeLost: the node controller. NodeShutdown, Shutdown and
# Terminated: graceful node shutdown, by release. The others: the kubelet's own admission.
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
TELLING: Final = ("reason", "message")


@dataclass(frozen=True, slots=True)
class Place:
    """A replica's name inside its gang."""

    pod_set: str
    index: int


def place_of(pod: Json) -> Place:
    """Give the replica that a pod is; one whose labels make no sense has UNKNOWN_INDEX."""
    labels = texts_at(pod, "metadata", "labels")
    index = INDEX.fullmatch(labels.get(REPLICA_INDEX_LABEL, ""))
    # The operator writes the type in lower case, the spec's keys begin with a capital.
    pod_set = labels.get(REPLICA_TYPE_LABEL, "").capitalize()
    return Place(pod_set, int(index[0]) if index and pod_set else UNKNOWN_INDEX)


def plan_of(launch: Launch) -> dict[Place, PlannedPod]:
    """Give the reservation of each replica."""
    return {Place(pod.pod_set, pod.index): pod for pod in launch.pods}


def has_gate(pod: Json) -> bool:
    """Whether the gateway's gate is still closed."""
    gates = items_at(pod, "spec", "schedulingGates")
    return entry_with(gates, name=SCHEDULING_GATE) is not None


def other_gates(pod: Json) -> list[Json]:
    """Give the scheduling gates that are not the gateway's."""
    gates = items_at(pod, "spec", "schedulingGates")
    return [gate for gate in gates if text_at(gate, "name") != SCHEDULING_GATE]


def condition(document: Json | None, name: str) -> Json | None:
    """Give the status condition of this type when its status is True."""
    return entry_with(items_at(document, "status", "conditions"), type=name, status="True")


def is_leaving(document: Json | None) -> bool:
    """Whether the pod or other object was asked to go."""
    return bool(text_at(document, "metadata", "deletionTimestamp"))


def phase_of(pod: Json) -> ReplicaPhase:
    """Give the phase; a pod that ended uses nothing even while its object is being deleted."""
    phase = text_at(pod, "status", "phase")
    if phase in ENDED:
        return ENDED[phase]
    if is_leaving(pod):
        return ReplicaPhase.TERMINATING
    if has_gate(pod):
        return ReplicaPhase.GATED
    # Unknown: its kubelet fell silent, so it may well run on and hold its devices.
    if phase in {"Running", "Unknown"}:
        return ReplicaPhase.READY if condition(pod, "Ready") else ReplicaPhase.RUNNING
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
    # KEP-3329: set by preemption, eviction, taints and the garbage collector.
    return condition(pod, "DisruptionTarget") is not None


def in_order(replicas: Iterable[ReplicaSeen]) -> tuple[ReplicaSeen, ...]:
    """Sort by pod set and index."""
    return tuple(sorted(replicas, key=lambda seen: (seen.pod_set, seen.index, seen.uid)))


def _main_status(pod: Json) -> Json:
    statuses = items_at(pod, "status", "containerStatuses")
    return entry_with(statuses, name=MAIN_CONTAINER) or {}


def _message(pod: Json) -> str:
    """Give the most telling words of a pod's status, trimmed."""
    state = mapping_at(_main_status(pod), "state")
    said = (
        *(text_at(pod, "status", key) for key in TELLING),
        *(text_at(state, kind, key) for kind in ("waiting", "terminated") for key in TELLING),
    )
    return ": ".join(dict.fromkeys(filter(None, said)))[:MOST_MESSAGE]
