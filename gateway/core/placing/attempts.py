"""A gang prepared for placing: its pod sets as shapes, preferred rules first taken as required.

Prepared once for a gang and its masks; what is free plays no part in it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

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


class Slicing(NamedTuple):
    """A gang whose pods stand together slice by slice."""

    main: Ask
    """The set that is cut."""
    lead: Ask | None
    """A single pod that comes before it and is the first of its first slice."""
    rest: tuple[Ask, ...]
    """Sets that just fill."""
    labels: tuple[str, ...]
    """Preferred level or none, then the label of each slice."""
    sizes: tuple[int, ...]
    """Pods of a slice, for each of these labels; the first is that of the widest slice."""

    @property
    def slices(self) -> int:
        """How many slices of the widest level there are; what is left over counts as one."""
        return -(-(self.main.count + (self.lead is not None)) // self.sizes[0])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Attempt:
    """A gang under one choice of which preferred rules count as required."""

    asks: tuple[Ask, ...]
    """Those that ask for most of a node first."""
    singles_first: tuple[Ask, ...]
    """The same, single pods before others, then by name."""
    levels: tuple[tuple[str, tuple[Ask, ...]], ...]
    """Required node labels by name, each with the pod sets that must share one domain of it."""
    slicing: Slicing | None = None
    """None for most gangs, whose pods stand as they come."""


def attempts_of(
    shapes: Shapes, pod_sets: PodSets, masks: Iterable[Mapping[str, Bool]]
) -> tuple[Attempt, ...]:
    """Give the attempts in the order in which they are made, none that only repeats another.

    One domain for the whole gang counts for more than near devices: every pod feels a slow way
    between racks, a NIC that hangs farther off is felt on its own node. Nodes to avoid are taken
    last: on a node that breaks the gang it is of no use how near its pods are.
    """
    ordered = tuple(sorted(pod_sets, key=_size, reverse=True))
    return tuple(
        _attempt(
            tuple(_ask(shapes, each, nodes[each.name], (is_bound, is_strict)) for each in ordered),
            pod_sets,
        )
        for nodes in masks
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


def _attempt(asks: tuple[Ask, ...], pod_sets: PodSets) -> Attempt:
    labels = sorted({ask.level for ask in asks if ask.level})
    return Attempt(
        asks=asks,
        singles_first=tuple(sorted(asks, key=lambda ask: (ask.count > 1, ask.name))),
        levels=tuple((label, tuple(ask for ask in asks if ask.level == label)) for label in labels),
        slicing=_slicing({ask.name: ask for ask in asks}, pod_sets),
    )


def in_ranks(pod_sets: PodSets) -> list[PodSetRequest]:
    """Give the sets of a gang that are cut into slices, in the order of their pods' ranks."""
    return sorted((each for each in pod_sets if each.slices), key=lambda e: e.name != "Master")


def _slicing(asks: Mapping[str, Ask], pod_sets: PodSets) -> Slicing | None:
    sliced = in_ranks(pod_sets)
    if not sliced:
        return None
    # Of sets that have equally many pods the last: a Master comes before its one Worker.
    main = max(enumerate(sliced), key=lambda each: (each[1].count, each[0]))[1]
    leads = [asks[each.name] for each in sliced if each is not main and each.count == 1]
    lead = leads[0] if leads else None
    sizes = tuple(size for _, size in main.slices)
    return Slicing(
        main=asks[main.name],
        lead=lead,
        rest=tuple(ask for ask in asks.values() if ask not in {lead, asks[main.name]}),
        labels=(asks[main.name].spread, *(label for label, _ in main.slices)),
        # Where a level is only preferred, what is counted in its domains are the widest slices.
        sizes=(sizes[0], *sizes),
    )


class Prepared:
    """Gangs that were prepared, found by identity: hashing a gang costs more than placing it."""

    def __init__(self, shapes: Shapes, names: Sequence[str]) -> None:
        """Start with none; `names` are those of the nodes."""
        self._shapes = shapes
        self._names = names
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
            known = pod_sets, masks, self._made(pod_sets, nodes)
            self._known[key] = known
        return known[2]

    def _made(self, pod_sets: PodSets, nodes: Mapping[str, Bool]) -> tuple[Attempt, ...]:
        return attempts_of(self._shapes, pod_sets, self._masks(pod_sets, nodes))

    def _masks(self, pod_sets: PodSets, nodes: Mapping[str, Bool]) -> Iterator[Mapping[str, Bool]]:
        """Give the nodes without those that are better avoided, if there are any, then all."""
        avoided = {e.name: set(e.avoid) for e in pod_sets if e.avoid and not e.is_avoid_required}
        if avoided:
            others = {
                name: np.array([node not in names for node in self._names], dtype=np.bool_)
                for name, names in avoided.items()
            }
            yield {name: mask & others.get(name, mask) for name, mask in nodes.items()}
        yield nodes
