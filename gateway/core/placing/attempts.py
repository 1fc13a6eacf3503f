"""A gang prepared for placing: its pod sets as shapes, preferred rules first taken as required.

Prepared once for a gang and its masks; what is free plays no part in it.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from gateway.core.devices.fleet import Bool
from gateway.core.jobs.request import PodSetRequest
from gateway.core.placing.fits import PodFits
from gateway.core.placing.shapes import Shapes
from gateway.core.resources import CPU, GPU

PodSets = tuple[PodSetRequest, ...]
MAX_PREPARED = 4096


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ask:
    """One pod set under the rules of one attempt."""

    name: str
    count: int
    fits: PodFits
    allowed: Bool
    """Nodes that its own rules allow."""
    level: str
    """Node label of which all its pods must share one value; empty is none."""
    spread: str
    """Node label of which its pods should have few values; empty is none."""

    @property
    def label(self) -> str:
        """The node label by whose domains room for it is counted."""
        return self.level or self.spread


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Attempt:
    """A gang under one choice of which preferred rules count as required."""

    asks: tuple[Ask, ...]
    """Those that ask for most of a node first."""
    singles_first: tuple[Ask, ...]
    """The same, single pods before others, then by name."""
    levels: tuple[tuple[str, tuple[Ask, ...]], ...]
    """Required node labels by name, each with the pod sets that must share one domain of it."""


def attempts_of(
    shapes: Shapes, pod_sets: PodSets, nodes: Mapping[str, Bool]
) -> tuple[Attempt, ...]:
    """Give the attempts in the order in which they are made, none that only repeats another.

    One domain for the whole gang counts for more than near devices: every pod feels a slow way
    between racks, a NIC that hangs farther off is felt on its own node.
    """
    ordered = tuple(sorted(pod_sets, key=_size, reverse=True))
    return tuple(
        _attempt(
            tuple(_ask(shapes, each, nodes[each.name], (is_bound, is_strict)) for each in ordered)
        )
        for is_bound in _both(any(each.level and not each.is_level_required for each in ordered))
        for is_strict in _both(any(_may_hang_apart(shapes, each) for each in ordered))
    )


def _both(has_preferred: bool) -> tuple[bool, ...]:  # noqa: FBT001 - the one thing it is about
    return (True, False) if has_preferred else (False,)


def _may_hang_apart(shapes: Shapes, pod_set: PodSetRequest) -> bool:
    near = shapes.fits(pod_set, is_strict=True).shape.wish.is_near
    return near and not pod_set.is_pair_required


def _size(pod_set: PodSetRequest) -> tuple[int, int, str]:
    wanted = dict(pod_set.per_pod)
    return wanted.get(GPU, 0), wanted.get(CPU, 0), pod_set.name


def _ask(shapes: Shapes, pod_set: PodSetRequest, allowed: Bool, firmness: tuple[bool, bool]) -> Ask:
    is_bound = firmness[0] or pod_set.is_level_required
    return Ask(
        name=pod_set.name,
        count=pod_set.count,
        fits=shapes.fits(pod_set, is_strict=firmness[1]),
        allowed=allowed,
        level=pod_set.level if is_bound else "",
        spread="" if is_bound else pod_set.level,
    )


def _attempt(asks: tuple[Ask, ...]) -> Attempt:
    labels = sorted({ask.level for ask in asks if ask.level})
    return Attempt(
        asks=asks,
        singles_first=tuple(sorted(asks, key=lambda ask: (ask.count > 1, ask.name))),
        levels=tuple((label, tuple(ask for ask in asks if ask.level == label)) for label in labels),
    )


class Prepared:
    """Gangs that were prepared, found by identity: hashing a gang costs more than placing it."""

    def __init__(self, shapes: Shapes) -> None:
        """Start with none."""
        self._shapes = shapes
        self._known: dict[tuple[int, ...], tuple[PodSets, list[Bool], tuple[Attempt, ...]]] = {}

    def attempts(self, pod_sets: PodSets, nodes: Mapping[str, Bool]) -> tuple[Attempt, ...]:
        """Give the attempts at placing a gang."""
        masks = [nodes[each.name] for each in pod_sets]
        key = (id(pod_sets), *map(id, masks))
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= MAX_PREPARED:
                # Thousands of shapes at once are rare; starting over is simpler than forgetting the
                # oldest.
                self._known.clear()
            # The gang and its masks are kept too, so that their identities stay theirs.
            known = pod_sets, masks, attempts_of(self._shapes, pod_sets, nodes)
            self._known[key] = known
        return known[2]
