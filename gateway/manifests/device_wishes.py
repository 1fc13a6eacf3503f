"""Reads how many NICs a pod wants, and how near its devices are to be.

NICs may be given as a number per pod or per GPU beside what the template asks of Kubernetes; the
template itself is not changed. Knows nothing of machines.
"""

import math
from fractions import Fraction
from typing import Any, Final

from gateway.core.vocabulary import MOST_DEVICES, PairRule, PartitionRule
from gateway.manifests.fields import to_text
from gateway.manifests.pod_requests import Requests
from gateway.manifests.spot import Spot

_COUNTS: Final = ("nics", "nics_per_gpu")


def refuse_contradictions(settled: dict[str, Any], *, has_gpus: bool) -> None:
    """Refuse fields that say nothing, or two things, of a job's devices."""
    given = dict(Spot(settled).given(("pair_required", *_COUNTS)))
    if "pair" not in settled and "pair_required" in given:
        raise given["pair_required"].refuse(
            "pair_required says nothing without a pair rule",
            allowed=tuple(PairRule),
            hint="name the pair rule too, or remove pair_required",
        )
    given.pop("pair_required", None)
    _refuse_counts(list(given.values()), has_gpus=has_gpus)


def _refuse_counts(counts: list[Spot], *, has_gpus: bool) -> None:
    for spot in counts:
        is_one = spot is counts[0]
        spot.demand(is_one, "NICs are given per pod and per GPU", "keep one of the two")
        spot.demand(has_gpus, "no pod asks for GPUs to go with NICs", "ask for GPUs, or remove it")


def device_fields(settled: dict[str, Any], per_pod: Requests) -> dict[str, Any]:
    """Give the fields of a PodSet that say which devices it wants; `per_pod` with NICs counted."""
    gpus = per_pod.get("gpu", 0)
    # A pod without GPUs pairs nothing; leaving the rules out keeps like requests alike.
    if not gpus:
        return {"per_pod": per_pod}
    return {"per_pod": _with_nics(settled, per_pod, gpus), **_rules(settled)}


def _rules(settled: dict[str, Any]) -> dict[str, Any]:
    readers = {
        "pair": ("pair", PairRule),
        "pair_required": ("is_pair_required", bool),
        "partition": ("partition", PartitionRule),
    }
    return {
        field: read(settled[name]) for name, (field, read) in readers.items() if name in settled
    }


def _with_nics(settled: dict[str, Any], per_pod: Requests, gpus: int) -> Requests:
    for name, spot in Spot(settled).given(_COUNTS):
        each = 1 if name == "nics" else gpus
        # Two GPUs that share a NIC need one for 1, 2 for 3: never a GPU without.
        wanted = math.ceil(Fraction(str(spot.value)) * each)
        _refuse_unmeant(spot, wanted, per_pod)
        # Amounts of nothing are left out, as those of the template are.
        return dict(sorted({**per_pod, "rdma": wanted}.items())) if wanted else per_pod
    return per_pod


def _refuse_unmeant(spot: Spot, wanted: int, per_pod: Requests) -> None:
    spot.demand(
        wanted <= MOST_DEVICES,
        f"{wanted} NICs for a pod are more than any machine has",
        "lower it",
        allowed=(f"at most {MOST_DEVICES} NICs per pod",),
    )
    asked = per_pod.get("rdma", wanted)
    spot.demand(
        asked == wanted,
        f"{to_text(spot.value)} means {wanted} NICs for a pod, but its template asks for {asked}",
        "say the same in both, or remove one of the two",
        allowed=(str(asked),),
    )
