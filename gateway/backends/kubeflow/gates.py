"""Decides which gates open and builds the one patch that pins a pod and opens it. Pure.

Node affinity, annotations and the removal of the gate travel in one request, so that no scheduler
ever sees a pod that is open but not pinned.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final

from gateway.backends.base import Launch, PlannedPod
from gateway.backends.environment import ANNOTATIONS, plan_annotations
from gateway.backends.kubeflow.json_paths import Json, at, items_at, mapping_at, texts_at
from gateway.backends.kubeflow.names import is_gpu, is_rdma
from gateway.backends.kubeflow.replicas import (
    Place,
    has_gate,
    is_leaving,
    other_gates,
    place_of,
    plan_of,
)
from gateway.backends.kubeflow.requests import effective_requests, total_of
from gateway.core.vocabulary import LABEL_PREFIX, DeviceKind
from gateway.errors import ClusterRejected

REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
NODE_ANNOTATION: Final = LABEL_PREFIX + ANNOTATIONS["NODE"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """A gated pod and the place that it gets."""

    pod: Json
    planned: PlannedPod


@dataclass(frozen=True, slots=True, kw_only=True)
class GateView:
    """What open_gates has to do: pods to open now, and whether all others are open already."""

    openings: tuple[Opening, ...]
    is_complete: bool
    """Every planned replica exists and is not leaving."""


def look(launch: Launch, pods: Sequence[Json]) -> GateView:
    """Compare the pods with the plan; a pod whose index has no reservation stays gated.

    Raises:
        ClusterRejected: a pod asks for more devices than are reserved for it.
    """
    plan = plan_of(launch)
    here = _staying(plan, pods)
    openings = tuple(
        Opening(pod=pod, planned=plan[place]) for place, pod in here.items() if has_gate(pod)
    )
    # All are judged before the first is opened, so that no half of a gang starts.
    for opening in openings:
        _refuse_misfit(opening)
    return GateView(openings=openings, is_complete=len(here) == len(plan))


def _staying(plan: Collection[Place], pods: Sequence[Json]) -> dict[Place, Json]:
    """Give the pods that the plan knows and nobody asked to go, in the plan's order."""
    # While a pod leaves, its index is taken; the operator creates the successor only afterwards.
    here = {place_of(pod): pod for pod in pods if not is_leaving(pod)}
    return {place: here[place] for place in plan if place in here}


def has_open_pod(launch: Launch, pods: Sequence[Json]) -> bool:
    """Whether the gateway opened some replica already, so that the gang once was complete.

    A pod whose gate a stranger removed lacks the plan and proves nothing.
    """
    plan = plan_of(launch)
    return any(_was_opened(pod, plan.get(place_of(pod))) for pod in pods)


def _was_opened(pod: Json, planned: PlannedPod | None) -> bool:
    node = texts_at(pod, "metadata", "annotations").get(NODE_ANNOTATION)
    return planned is not None and node == planned.node and not has_gate(pod)


def opening_patch(launch: Launch, opening: Opening) -> dict[str, Any]:
    """Give the merge patch that pins one pod to its place and opens our gate, no other."""
    return {
        # The kubelet resolves fieldRef variables when it starts the container, so the program
        # sees what is written here while the pod is still gated.
        "metadata": {"annotations": plan_annotations(launch, opening.planned)},
        "spec": {
            "affinity": {"nodeAffinity": {REQUIRED: pinned(opening.pod, opening.planned.node)}},
            # A merge patch replaces lists whole; null removes the list.
            "schedulingGates": other_gates(opening.pod) or None,
        },
    }


def pinned(pod: Json, node: str) -> dict[str, Any]:
    """Give the pod's required node affinity with `node` added to every term.

    Terms are alternatives, so a term that is left out would be a way around the pin. A term
    without any requirement matches nothing and may not be changed (Kubernetes KEP-3838).
    """
    # By field, not by the hostname label, which need not be the node's name. The API allows
    # matchFields no other key than this one, and In with exactly one value.
    pin = {"key": "metadata.name", "operator": "In", "values": [node]}
    required = mapping_at(pod, "spec", "affinity", "nodeAffinity", REQUIRED)
    terms = [_with_pin(term, pin) for term in items_at(required, "nodeSelectorTerms")]
    return {**required, "nodeSelectorTerms": terms or [{"matchFields": [pin]}]}


def _with_pin(term: Json, pin: dict[str, Any]) -> dict[str, Any]:
    fields = items_at(term, "matchFields")
    # A repeated pass must not grow the list: a term may only be narrowed while gated.
    if pin in fields or not (fields or at(term, "matchExpressions")):
        return term
    return {**term, "matchFields": [*fields, pin]}


def _refuse_misfit(opening: Opening) -> None:
    """Compare the pod's devices with its reservation: a webhook may have changed the pod."""
    wanted = effective_requests(opening.pod)
    for kind, counts in ((DeviceKind.GPU, is_gpu), (DeviceKind.RDMA, is_rdma)):
        asked = total_of(wanted, counts)
        reserved = sum(device.kind is kind for device in opening.planned.devices)
        if asked > reserved:
            place = place_of(opening.pod)
            raise ClusterRejected(
                f"{place.pod_set} {place.index} asks for {asked} {kind} devices in the cluster,"
                f" {reserved} are reserved",
                hint="something in the cluster changed the pod; see its admission webhooks",
            )
