"""Reads how near to each other the pods of a gang are to be: a level, as its node label."""

from typing import Any

from gateway.manifests.options import ReadOptions
from gateway.manifests.spot import Spot

PREFERRED = "preferred"


def level_fields(settled: dict[str, Any], options: ReadOptions) -> dict[str, Any]:
    """Give the fields of a PodSet that say which level its pods share; none without a level.

    All pod sets get the same: a Master belongs beside its Workers.

    Raises:
        InvalidInput: a level without a node label here, or a mode without a level.
    """
    if "topology_level" not in settled:
        return _unlevelled(settled)
    level = Spot(settled["topology_level"], "/topology_level")
    label = options.topology_labels.get(level.text(), "")
    level.demand(
        bool(label),
        f"no node label is set for level {level.text()!r}",
        "ask an admin to name it in TRAINING_GATEWAY_TOPOLOGY_LABELS",
        allowed=tuple(options.topology_labels),
    )
    return {"level": label, "is_level_required": settled.get("topology_mode") != PREFERRED}


def _unlevelled(settled: dict[str, Any]) -> dict[str, Any]:
    if "topology_mode" in settled:
        raise Spot(settled["topology_mode"], "/topology_mode").refuse(
            "topology_mode says nothing without topology_level",
            hint="name the level too, or remove topology_mode",
        )
    return {}
