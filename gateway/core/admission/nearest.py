"""What comes nearest to devices that no machine has: words for a refusal at submit.

Only for pod sets that some idle node could hold if its devices might hang anywhere.
"""

from collections.abc import Iterator
from dataclasses import replace

from gateway.core.devices.fleet import Bool
from gateway.core.jobs.request import PodSetRequest
from gateway.core.placing.room import Room, wish_of
from gateway.core.resources import GPU, RDMA, amounts
from gateway.core.resources.words import in_words
from gateway.core.vocabulary import PairRule, PartitionRule

LOOSER = (PairRule.NUMA, PairRule.NODE)


def nearest_words(idle: Room, pod_set: PodSetRequest, nodes: Bool) -> str:
    """Say which rule no node can meet and the best that one can; empty when no rule is to blame."""
    wish = wish_of(pod_set)
    apart = replace(pod_set, partition=PartitionRule.NONE)
    if wish.is_joined and idle.capacity(apart, nodes).any():
        sizes = _smaller(pod_set, wish.gpus)
        best = next((gpus for gpus, each in sizes if idle.capacity(each, nodes).any()), 0)
        return f"no node has an NVLink partition of {in_words(GPU, wish.gpus)}{_of_size(best)}"
    asked = f"{in_words(GPU, wish.gpus)} with {in_words(RDMA, wish.nics)}"
    for rule in LOOSER:
        if idle.capacity(replace(pod_set, pair=rule), nodes).any():
            words = f"no node has {asked} near enough for pair rule '{wish.rule}'"
            return f"{words}; the nearest that one has is '{rule}'"
    return ""


def _smaller(pod_set: PodSetRequest, gpus: int) -> Iterator[tuple[int, PodSetRequest]]:
    """Give the same pods with fewer GPUs, and without NICs, which may be too many for them."""
    kept = {name: amount for name, amount in pod_set.per_pod if name != RDMA}
    for fewer in range(gpus - 1, 0, -1):
        yield fewer, replace(pod_set, per_pod=amounts({**kept, GPU: fewer}))


def _of_size(gpus: int) -> str:
    return f"; the largest below that is one of {in_words(GPU, gpus)}" if gpus else ""
