"""Reads how near to each other the pods of a gang are to be: levels, as their node labels."""

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
    label = _label(Spot(settled["topology_level"], "/topology_level"), options)
    return {"level": label, "is_level_required": settled.get("topology_mode") != PREFERRED}


def _unlevelled(settled: dict[str, Any]) -> dict[str, Any]:
    if "topology_mode" in settled:
        raise Spot(settled["topology_mode"], "/topology_mode").refuse(
            "topology_mode says nothing without topology_level",
            hint="name the level too, or remove topology_mode",
        )
    return {}


def slices_of(settled: dict[str, Any], options: ReadOptions, pods: int) -> dict[str, Any]:
    """Give the field of a PodSet that says which pods of the gang share a domain; none without.

    All pod sets get the same: ranks are counted over the whole gang, the Master's first.

    Raises:
        InvalidInput: one of level and size without the other, a size that does not divide what it
            cuts, or a level without a node label here.
    """
    given = dict(Spot(settled).given(("topology_slice_level", "topology_slice_size")))
    if not given:
        return {}
    _demand_both(given)
    levels, sizes = (_several(each) for each in given.values())
    given["topology_slice_level"].demand(
        len(levels) == len(sizes) > 0, "slices need as many levels as sizes", "give one for each"
    )
    _demand_whole(pods, sizes)
    pairs = zip(levels, sizes, strict=True)
    return {"slices": tuple((_label(level, options), size.value) for level, size in pairs)}


def avoided(settled: dict[str, Any]) -> dict[str, Any]:
    """Give the fields of a PodSet that say which nodes it keeps off; none without such nodes.

    Raises:
        InvalidInput: a mode without nodes.
    """
    if not settled.get("topology_avoid_nodes"):
        for _, mode in Spot(settled).given(("topology_avoid_mode",)):
            raise mode.refuse(
                "topology_avoid_mode says nothing without topology_avoid_nodes",
                hint="name the nodes too, or remove topology_avoid_mode",
            )
        return {}
    is_required = settled.get("topology_avoid_mode") != PREFERRED
    return {"avoid": tuple(settled["topology_avoid_nodes"]), "is_avoid_required": is_required}


def _demand_whole(pods: int, sizes: list[Spot]) -> None:
    for whole, size in zip([pods, *(each.value for each in sizes)], sizes, strict=False):
        size.demand(
            whole % size.value == 0,
            f"{whole} pods cannot be cut into slices of {size.value}",
            "give a size that divides the number of pods, Master included, and the size before it",
        )


def _several(spot: Spot) -> list[Spot]:
    values = spot.value if isinstance(spot.value, list) else [spot.value]
    return [Spot(each, spot.pointer) for each in values]


def _demand_both(given: dict[str, Spot]) -> None:
    if len(given) == 1:
        ((name, spot),) = given.items()
        raise spot.refuse(
            f"{name} says nothing alone",
            hint="give topology_slice_level and topology_slice_size together, or none of them",
        )


def _label(level: Spot, options: ReadOptions) -> str:
    label = options.topology_labels.get(level.text(), "")
    level.demand(
        bool(label),
        f"no node label is set for level {level.text()!r}",
        "ask an admin to name it in TRAINING_GATEWAY_TOPOLOGY_LABELS",
        allowed=tuple(options.topology_labels),
    )
    return label
