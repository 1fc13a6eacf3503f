"""A gang's shape as canonical JSON and back; its digest is the identity of a request class."""

import hashlib
import json
from typing import Any

from gateway.core.jobs.request import PodSetRequest, RequestClass
from gateway.core.resources import amounts
from gateway.core.resources.node_rules import Requirement, Toleration
from gateway.core.vocabulary import PairRule, PartitionRule

Shape = list[dict[str, Any]]


def encode(request: RequestClass) -> Shape:
    """Give a shape as JSON; equal requests give equal JSON."""
    return [_encode_pod_set(pod_set) for pod_set in request.pod_sets]


def decode(shape: Shape) -> RequestClass:
    """Give the request of a stored shape."""
    return RequestClass(pod_sets=tuple(_decode_pod_set(item) for item in shape))


def digest(shape: Shape) -> str:
    """Give the SHA-256 of the canonical JSON, in hex."""
    text = json.dumps(shape, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _encode_pod_set(pod_set: PodSetRequest) -> dict[str, Any]:
    shape = {
        "name": pod_set.name,
        "count": pod_set.count,
        "per_pod": dict(pod_set.per_pod),
        "node_selector": dict(pod_set.node_selector),
        "affinity": [
            [[item.key, item.operator, list(item.values)] for item in term]
            for term in pod_set.affinity
        ],
        "tolerations": [
            [item.key, item.operator, item.value, item.effect] for item in pod_set.tolerations
        ],
        "pair": pod_set.pair.value,
        "is_pair_required": pod_set.is_pair_required,
        "host_ports": list(pod_set.host_ports),
    }
    if pod_set.level:
        # Left out without a level, so that digests stored before levels existed stay the same.
        shape |= {"level": pod_set.level, "is_level_required": pod_set.is_level_required}
    if pod_set.slices:
        shape["slices"] = [list(each) for each in pod_set.slices]
    if pod_set.avoid:
        shape |= {"avoid": list(pod_set.avoid), "is_avoid_required": pod_set.is_avoid_required}
    if pod_set.partition is not PartitionRule.NONE:
        shape["partition"] = pod_set.partition.value
    return shape


def _decode_pod_set(item: dict[str, Any]) -> PodSetRequest:
    return PodSetRequest(
        name=item["name"],
        count=item["count"],
        per_pod=amounts(item["per_pod"]),
        node_selector=tuple(sorted(item["node_selector"].items())),
        affinity=tuple(
            tuple(
                Requirement(key=key, operator=operator, values=tuple(values))
                for key, operator, values in term
            )
            for term in item["affinity"]
        ),
        tolerations=tuple(
            Toleration(key=key, operator=operator, value=value, effect=effect)
            for key, operator, value, effect in item["tolerations"]
        ),
        pair=PairRule(item["pair"]),
        is_pair_required=item["is_pair_required"],
        partition=PartitionRule(item.get("partition", PartitionRule.NONE)),
        host_ports=tuple(item["host_ports"]),
        level=item.get("level", ""),
        is_level_required=item.get("is_level_required", True),
        slices=tuple((label, size) for label, size in item.get("slices", ())),
        avoid=tuple(item.get("avoid", ())),
        is_avoid_required=item.get("is_avoid_required", True),
    )
