"""Brings a manifest into the form that is stored: what is implied is written down.

Changes only what means the same to Kubernetes: nulls are dropped, missing replica counts written,
fractional quantities turned to text, for a CRD takes them as text only.
"""

from collections.abc import Iterator
from typing import Any

from gateway.manifests.pod_requests import quantity_maps
from gateway.manifests.spot import Spot


def refuse_meaningless_nulls(manifest: dict[str, Any]) -> None:
    """Refuse an explicit null where a value must have been meant: a count or a quantity."""
    for _, replica in Spot(manifest).at("spec", "pytorchReplicaSpecs").entries():
        # Kubernetes reads null as absent, so `replicas: ${WORKERS}` left empty by a template engine
        # would train on one pod, and an empty GPU count on none.
        replica.at("replicas").demand(
            replica.fields().get("replicas", 1) is not None,
            "the number of replicas is empty",
            "a variable was probably left unset: write replicas: 1, or remove the line",
        )
        for name, _, spot in _quantities(replica):
            if spot.is_missing:
                raise spot.refuse(
                    f"the amount of {name} is empty",
                    hint="a variable was probably left unset: fill it in or remove the line",
                )


def write_implied(manifest: dict[str, Any], namespace: str) -> None:
    """Write down what the document implies: namespace, counts, quantities as text."""
    manifest["metadata"].setdefault("namespace", namespace)
    for _, replica in Spot(manifest).at("spec", "pytorchReplicaSpecs").entries():
        # The operator's webhook sees the raw object, before any default: a Master without a written
        # `replicas: 1` is refused there.
        replica.value.setdefault("replicas", 1)
        for name, quantities, spot in _quantities(replica):
            # The CRD's quantities are int-or-string: a JSON 0.5 is refused, and a text with spaces.
            if isinstance(spot.value, float | str):
                quantities.value[name] = str(spot.value).strip()


def _quantities(replica: Spot) -> Iterator[tuple[str, Spot, Spot]]:
    """Give every quantity of a replica's pods: its name, the mapping it is in, its place."""
    for quantities in quantity_maps(replica.at("template", "spec")):
        for name, spot in quantities.entries():
            yield name, quantities, spot
