"""Turns what a user wrote into the shape that a decision needs. The only place that does."""

from gateway.core.jobs.request import PodSetRequest, RequestClass
from gateway.core.resources import GPU, RDMA, amounts
from gateway.core.resources.node_rules import Requirement, Toleration
from gateway.schemas.job_spec import JobSpec, PodSet

MOST_RECENT = 512

_recent: dict[int, tuple[tuple[PodSet, ...], RequestClass]] = {}
"""Requests by the identity of the pod sets, which jobs of one template share."""


def request_of(spec: JobSpec) -> RequestClass:
    """Give a job's request; equal asks give equal requests."""
    known = _recent.get(id(spec.pod_sets))
    if known is not None and known[0] is spec.pod_sets:
        return known[1]
    request = RequestClass(pod_sets=tuple(map(_pod_set, spec.pod_sets)))
    if len(_recent) >= MOST_RECENT:
        _recent.clear()
    _recent[id(spec.pod_sets)] = spec.pod_sets, request
    return request


def totals_of(spec: JobSpec) -> tuple[int, int, int]:
    """Give a job's pods, GPUs and NICs."""
    pods = sum(pod_set.count for pod_set in spec.pod_sets)
    return pods, _total(spec, GPU), _total(spec, RDMA)


def _total(spec: JobSpec, resource: str) -> int:
    return sum(pod_set.count * pod_set.per_pod.get(resource, 0) for pod_set in spec.pod_sets)


def _pod_set(pod_set: PodSet) -> PodSetRequest:
    return PodSetRequest(
        name=pod_set.name,
        count=pod_set.count,
        per_pod=amounts(pod_set.per_pod),
        node_selector=tuple(sorted(pod_set.node_selector.items())),
        affinity=tuple(
            tuple(
                Requirement(key=item.key, operator=item.operator, values=item.values)
                for item in term
            )
            for term in pod_set.affinity
        ),
        tolerations=tuple(
            Toleration(key=item.key, operator=item.operator, value=item.value, effect=item.effect)
            for item in pod_set.tolerations
        ),
        pair=pod_set.pair,
        is_pair_required=pod_set.is_pair_required,
        partition=pod_set.partition,
        host_ports=tuple(sorted(pod_set.host_ports)),
        level=pod_set.level,
        is_level_required=pod_set.is_level_required,
        slices=pod_set.slices,
        avoid=pod_set.avoid,
        is_avoid_required=pod_set.is_avoid_required,
    )
