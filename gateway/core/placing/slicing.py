"""Placing a gang slice by slice: each so many pods in rank order share a domain of a level.

Slices are counted in all domains before a node is touched; then few domains are chosen, of those
the fullest, and few nodes inside them. Exact for one set of pods, also with a single pod before it.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from gateway.core.devices.fleet import Int64
from gateway.core.placing.attempts import Ask, Slicing
from gateway.core.placing.filling import Area, GangPlaces, fill_all, picks
from gateway.core.placing.levels import Tier
from gateway.core.placing.room import PodPlace, Room

SLICE = 1 << 32
"""A slice more counts for more than any number of pods."""
Picked = list[tuple[int, int]]


class Counts(NamedTuple):
    """What there is room for, before anything is taken."""

    pods: Int64
    """By node."""
    slices: tuple[Int64, ...]
    """Whole slices by domain, for each tier."""
    order: tuple[Int64, ...]
    """The smaller, the less room a domain has, for each tier: in slices first, then in pods."""


def count_slices(nest: tuple[Tier, ...], sizes: tuple[int, ...], pods: Int64) -> tuple[Int64, ...]:
    """Give how many whole slices each domain takes, tier by tier; the first has no slices itself.

    Args:
        nest: the domains of the level around the slices, then those of each kind of slice.
        sizes: pods of a slice, by tier.
        pods: how many pods each node takes.
    """
    found: list[Int64] = []
    sums = np.bincount(nest[-1].domain_of, pods, len(nest[-1].rows)).astype(np.int64)
    for tier, size in zip(reversed(nest), reversed(sizes), strict=True):
        # Nodes without the label share nothing, but that is no harm where it is only preferred.
        is_fit = tier.is_named | (tier is nest[0])
        found.append(np.where(is_fit, sums // size, 0))
        sums = np.bincount(tier.outer_of, found[-1] * size).astype(np.int64)
    return tuple(reversed(found))


def place_slices(room: Room, slicing: Slicing, area: Area) -> GangPlaces | None:
    """Take room for a whole gang that is cut into slices, or for none of it."""
    trial = _Trial(room, slicing, area)
    mark = room.mark()
    for row in trial.starts():
        places = trial.placed(row)
        if places is not None:
            return places
        room.back_to(mark)
    return None


class _Trial:
    """One gang on the chosen domains of its required levels."""

    def __init__(self, room: Room, slicing: Slicing, area: Area) -> None:
        self._room = room
        self._slicing = slicing
        self._area = area
        self._nest = room.nest(slicing.labels)
        self._is_named = np.logical_and.reduce(
            [tier.is_named[tier.domain_of] for tier in self._nest[1:]]
        )

    def starts(self) -> Iterator[int]:
        """Give the nodes to try for the first pod, one of each kind; none without such a pod."""
        pods = self._pods(self._slicing.main)
        if self._slicing.lead is None:
            # Past the last, so that whatever is looked up there is nothing.
            yield len(pods)
            return
        takes_lead = self._pods(self._slicing.lead) > 0
        # One more pod wherever the first may stand: what is too little then is too little.
        if self._counts(pods + takes_lead).slices[0].sum() >= self._slicing.slices:
            yield from self._different(np.flatnonzero(takes_lead), pods)

    def _different(self, rows: Int64, pods: Int64) -> list[int]:
        """Give nodes that differ in what they are or in where, in the best domains first."""
        inner, counts = self._nest[-1], self._counts(pods)
        domains = self._nest[1].domain_of[rows]
        enough = np.minimum(counts.slices[1][domains], self._slicing.slices)
        # The last key of lexsort is the first to sort by.
        keys = self._room.fullness[rows], inner.domain_of[rows], counts.order[1][domains], -enough
        rows = rows[np.lexsort(keys)]
        kinds = zip(
            inner.domain_of[rows].tolist(),
            self._room.state_of[rows].tolist(),
            self._slicing.main.allowed[rows].tolist(),
            self._inside(self._slicing.main, rows).tolist(),
            strict=True,
        )
        firsts: dict[tuple[object, ...], int] = {}
        for kind, row in zip(kinds, rows.tolist(), strict=True):
            firsts.setdefault(kind, row)
        return list(firsts.values())

    def placed(self, first: int) -> GangPlaces | None:
        """Place the gang with its first pod on this node; what is taken may stay if that fails."""
        main, lead = self._slicing.main, self._slicing.lead
        places: GangPlaces = {}
        if lead is not None:
            places[lead.name] = self._room.take_pods(first, lead.fits, 1)
        # The first pod stands already; counted as one of the others it fills up its slice.
        pods = self._pods(main)
        pods[first : first + 1] += 1
        counts = self._counts(pods)
        if not self._is_enough(counts, first):
            return None
        places[main.name] = self._taken(counts, first)
        used = (place.row for each in places.values() for place in each)
        others = fill_all(self._room, self._slicing.rest, self._area, used)
        return None if others is None else {**places, **others}

    def _is_enough(self, counts: Counts, first: int) -> bool:
        """Whether all slices have room, and one of them around the first pod."""
        around = (
            slices[tier.domain_of[first : first + 1]].all()
            for tier, slices in zip(self._nest, counts.slices, strict=True)
        )
        return bool(counts.slices[0].sum() >= self._slicing.slices) and all(around)

    def _taken(self, counts: Counts, first: int) -> list[PodPlace]:
        main, found = self._slicing.main, list[PodPlace]()
        for row, share in self._nodes(counts, (0, 0), (first, self._slicing.slices)):
            # What is left over takes a whole slice's room, and fewer pods.
            ours = min(share - (row == first), main.count - len(found))
            found += self._room.take_pods(row, main.fits, ours) if ours else []
        return found

    def _nodes(
        self, counts: Counts, domain: tuple[int, int], wanted: tuple[int, int]
    ) -> Iterator[tuple[int, int]]:
        """Give nodes with numbers of pods for so many slices inside a domain of the tier before.

        Args:
            counts: what there is room for.
            domain: the tier to choose in, and the domain of the tier before it.
            wanted: the node to begin with, where it is inside, and the number of slices.
        """
        number, outer = domain
        first, count = wanted
        tier, size = self._nest[number], self._slicing.sizes[number]
        inside = np.flatnonzero(tier.outer_of == outer)
        kinds = tier.is_named[inside], np.isin(inside, tier.domain_of[first : first + 1])
        slices, order = counts.slices[number][inside], counts.order[number][inside]
        for index, share in _chosen(slices, order, kinds, count):
            chosen = int(inside[index])
            if tier is self._nest[-1]:
                yield from self._filled(counts.pods, tier.rows[chosen], first, share * size)
            else:
                inner = share * size // self._slicing.sizes[number + 1]
                yield from self._nodes(counts, (number + 1, chosen), (first, inner))

    def _filled(
        self, pods: Int64, rows: Int64, first: int, count: int
    ) -> Iterator[tuple[int, int]]:
        """Give nodes of one domain with numbers of pods, in the order in which they are filled."""
        order = self._room.fullness[rows]
        for index, share in _first_then(pods[rows], order, rows == first, count):
            yield int(rows[index]), share

    def _counts(self, pods: Int64) -> Counts:
        slices = count_slices(self._nest, self._slicing.sizes, pods)
        usable = np.where(self._is_named, pods, 0)
        sums = [np.bincount(each.domain_of, usable, len(each.rows)) for each in self._nest]
        order = (
            each * SLICE + room.astype(np.int64) for each, room in zip(slices, sums, strict=True)
        )
        return Counts(pods, slices, tuple(order))

    def _pods(self, ask: Ask) -> Int64:
        """Give how many pods of a set each node takes now, no more than there are."""
        pods = np.minimum(self._room.view(ask).pods, ask.count).astype(np.int64)
        inside = self._inside(ask, np.arange(len(pods)))
        return np.where(inside, pods, 0)

    def _inside(self, ask: Ask, rows: Int64) -> np.ndarray:
        return np.isin(rows, self._area.get(ask.level, rows))


def _chosen(
    slices: Int64, order: Int64, kinds: tuple[np.ndarray, np.ndarray], count: int
) -> Picked:
    """Give few domains with numbers of slices; those without the label only for what is left."""
    is_named, is_own = kinds
    named = _first_then(np.where(is_named | is_own, slices, 0), order, is_own, count)
    left = count - sum(share for _, share in named)
    unnamed = np.where(is_named | is_own, 0, slices)
    return [*named, *picks(unnamed, order, left)]


def _first_then(room: Int64, order: Int64, is_first: np.ndarray, count: int) -> Picked:
    """Give the one to begin with, then the first that take all that is missing, or most."""
    if not is_first.any():
        return picks(room, order, count)
    first = int(is_first.argmax())
    share = min(count, int(room[first]))
    rest = room.copy()
    rest[first] = 0
    return [(first, share), *picks(rest, order, count - share)]
