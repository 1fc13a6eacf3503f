"""The best NICs beside GPUs that are given: an exact search by counts, place by place.

NICs of one place are alike but for their order, so only how many each place gives has to be found;
parts of equal counts differ by their keys alone, and of those the best is kept.
"""

from functools import lru_cache
from itertools import product
from typing import NamedTuple

from gateway.core.devices.keys import Scale, order_of
from gateway.core.devices.masks import lowest_of
from gateway.core.devices.nests import Leaf, Nest
from gateway.core.devices.subset_lists import Counts
from gateway.core.vocabulary import PairRule

REMEMBERED = 16384
"""Parts of nests kept: at most some 30 MB."""
# Plain tuples, because these loops are what a choice costs.
Part = tuple[int, int, tuple[int, ...]]
"""NICs; GPUs that carry one more; NICs by place, where what is left has to be judged by place."""
Taking = tuple[int, int]
"""What a part adds to the key, and its NICs as a mask."""
Parts = dict[Part, Taking]
START: Parts = {(0, 0, ()): (0, 0)}


class NicWish(NamedTuple):
    """NICs to find: each GPU carries `each` of them, and `busier` GPUs one more."""

    nics: int
    each: int
    busier: int
    rule: PairRule
    """SWITCH and NUMA bind; whoever only prefers them asks for NONE in the end."""
    keeps_places: bool

    def is_broken(self, rule: PairRule, over: int) -> bool:
        """Whether so many NICs too far for a rule break the one that was asked for."""
        return over > 0 and self.rule is rule

    def places(self, rule: PairRule, count: int) -> tuple[int, ...]:
        """Give the count to keep for a place of the rule's kind."""
        return (count,) if self.keeps_places and self.rule is rule else ()


class Spare(NamedTuple):
    """The devices of one nest that are free, and how many GPUs of each leaf are chosen."""

    gpus: int
    nics: int
    chosen: tuple[int, ...]


class NicSearch:
    """Finds NICs on one machine in one state."""

    def __init__(
        self, nests: tuple[Nest, ...], scale: Scale, free: tuple[int, int], wish: NicWish
    ) -> None:
        """Take the machine, its free GPUs and NICs, and what is wanted."""
        self._nests = nests
        self._scale = scale
        self._free = [(nest.gpus & free[0], nest.nics & free[1]) for nest in nests]
        self._wish = wish

    def kind(self, counts: Counts) -> tuple[object, ...]:
        """Give what is equal for subsets of GPUs that leave the same and find the same."""
        return tuple(sorted(map(_kind, self._nests, self._spares(counts))))

    def found(self, counts: Counts) -> list[Taking]:
        """Give the choices beside GPUs of these counts; one, unless places are kept."""
        parts = START
        for nest, spare in zip(self._nests, self._spares(counts), strict=True):
            parts = _joined(parts, _nest_parts(nest, self._scale, spare, self._wish), self._wish)
        return _complete(parts, self._wish)

    def _spares(self, counts: Counts) -> list[Spare]:
        return [Spare(*free, chosen) for free, chosen in zip(self._free, counts, strict=True)]


def _complete(parts: Parts, wish: NicWish) -> list[Taking]:
    """Give the parts that are all that was wanted."""
    return [taking for part, taking in parts.items() if part[:2] == (wish.nics, wish.busier)]


@lru_cache(maxsize=REMEMBERED)
def _kind(nest: Nest, spare: Spare) -> tuple[object, ...]:
    places = (
        (count, (leaf.gpus & spare.gpus).bit_count(), (leaf.nics & spare.nics).bit_count(), leaf[2])
        for leaf, count in zip(nest.leaves, spare.chosen, strict=True)
    )
    return nest.is_numa, *sorted(places)


@lru_cache(maxsize=REMEMBERED)
def _nest_parts(nest: Nest, scale: Scale, spare: Spare, wish: NicWish) -> Parts:
    """Give what a NUMA node can add."""
    parts = START
    for leaf, chosen in zip(nest.leaves, spare.chosen, strict=True):
        own = _leaf_parts(leaf, scale, spare._replace(chosen=(chosen,)), wish)
        parts = _joined(parts, own, wish)
    return _in_numa(scale, spare, wish, parts) if nest.is_numa else _homeless(wish, parts)


def _leaf_parts(leaf: Leaf, scale: Scale, spare: Spare, wish: NicWish) -> Parts:
    """Give what a leaf with so many chosen GPUs can add."""
    (chosen,) = spare.chosen
    lowest = lowest_of(leaf.nics & spare.nics)
    weights = _weights(leaf, scale, leaf.counts(spare.gpus) - chosen, len(lowest))
    counts = range(min(wish.nics + 1, len(lowest)))
    parts: Parts = {}
    for count, busier in product(counts, range(min(wish.busier, chosen) + 1)):
        near = min((wish.each * chosen + busier) * leaf.is_switch, count)
        if not wish.is_broken(PairRule.SWITCH, count - near):
            key = -near * scale.near - order_of(lowest[count]) - weights[-1 - count]
            parts[count, busier, wish.places(PairRule.SWITCH, count)] = key, lowest[count]
    return parts


def _weights(leaf: Leaf, scale: Scale, gpus: int, count: int) -> tuple[int, ...]:
    """Give the weights of what can be left in a leaf, by NICs left; only switches have any."""
    return scale.switch[gpus][:count] if leaf.is_switch else (0,) * count


def _in_numa(scale: Scale, spare: Spare, wish: NicWish, parts: Parts) -> Parts:
    """Add to the parts of a NUMA node what counts there as a whole."""
    chosen, nics = sum(spare.chosen), spare.nics.bit_count()
    weights = scale.numa[spare.gpus.bit_count() - chosen]
    found: Parts = {}
    for (count, busier, places), (key, mask) in parts.items():
        near = min(wish.each * chosen + busier, count)
        if not wish.is_broken(PairRule.NUMA, count - near):
            total = key - weights[nics - count] - near * scale.near
            found[count, busier, places + wish.places(PairRule.NUMA, count)] = total, mask
    return found


def _homeless(wish: NicWish, parts: Parts) -> Parts:
    """Give the parts of devices whose place nobody knows: their NICs are near nothing."""
    return {part: own for part, own in parts.items() if not wish.is_broken(PairRule.NUMA, part[0])}


def _joined(left: Parts, right: Parts, wish: NicWish) -> Parts:
    """Give every way to take one part of each; of equal counts the one of the best key."""
    most, most_busier = wish.nics, wish.busier
    found: Parts = {}
    for (one, busy, places), (taken, mask) in left.items():
        for (two, busier, others), (more, nics) in right.items():
            if one + two > most or busy + busier > most_busier:
                continue
            part = one + two, busy + busier, places + others
            best = found.get(part)
            # Keys only add up, so what is behind here stays behind whatever is added later.
            if best is None or taken + more < best[0]:
                found[part] = taken + more, mask | nics
    return found
