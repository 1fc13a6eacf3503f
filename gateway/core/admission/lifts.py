"""What would let a gang start: changes that were tried on a copy of the state, never guessed.

Single changes first; if none is enough, changes are added in a fixed order until the gang fits, and
those that turn out not to be needed are dropped again. Each set admits the gang by itself, if
nobody comes before it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import accumulate, product

from gateway.core.admission.trial import Fit, Scene
from gateway.core.jobs.request import RequestClass
from gateway.core.queues.definitions import Queue
from gateway.core.resources import GPU, RDMA
from gateway.core.vocabulary import PairRule

MAX_NODES = 16
"""Largest set of nodes that is made minimal by dropping one at a time; larger ones are not told."""

LOOSER = (PairRule.SWITCH, PairRule.NUMA, PairRule.NODE, PairRule.NONE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lack:
    """What is in use on a node and would have to come free."""

    gpus: int
    """Mask."""
    nics: int
    amounts: tuple[tuple[str, int], ...]
    """By resource, above 0, in the fleet's order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A set of lifted limits."""

    quota: bool = False
    emptied: frozenset[int] = frozenset()
    """Rows of nodes on which everything comes free."""
    rule: PairRule | None = None
    is_spread: bool = False
    """Whether pods need not share a domain of a level any more."""
    is_whole: bool = False
    """Whether pods need not stand in slices any more."""
    healed: frozenset[int] = frozenset()

    def also(self, other: "Change") -> "Change":
        """Give both changes together."""
        return Change(
            quota=self.quota or other.quota,
            emptied=self.emptied | other.emptied,
            rule=other.rule or self.rule,
            is_spread=self.is_spread or other.is_spread,
            is_whole=self.is_whole or other.is_whole,
            healed=self.healed | other.healed,
        )

    def loosening(self, request: RequestClass) -> RequestClass:
        """Give a gang as this change lets it ask."""
        looser = loosened(request, self.rule)
        looser = spread(looser) if self.is_spread else looser
        return whole(looser) if self.is_whole else looser

    def not_emptying(self, row: int) -> "Change":
        """Give the change with this node as full as it is."""
        return replace(self, emptied=self.emptied - {row})

    def not_healing(self, row: int) -> "Change":
        """Give the change with this node as healthy as it is."""
        return replace(self, healed=self.healed - {row})


@dataclass(frozen=True, slots=True)
class Question:
    """One gang on one state."""

    scene: Scene
    queue: Queue
    request: RequestClass
    answers: dict[Change, Fit | None] = field(default_factory=dict)

    def answer(self, change: Change) -> Fit | None:
        """Give how the gang fits with this change; None when it does not."""
        # Each answer is a whole placement, and minimal sets ask for the same ones again and again.
        if change not in self.answers:
            self.answers[change] = self._try(change)
        return self.answers[change]

    def _try(self, change: Change) -> Fit | None:
        room = self.scene.room.twin().empty(change.emptied).heal(change.healed)
        scene = replace(self.scene, room=room, ignores_quota=change.quota)
        return scene.look(self.queue, change.loosening(self.request))

    def everything(self) -> list[Change]:
        """Give each kind of change in full, in the order in which they are added up."""
        rows = frozenset(range(len(self.scene.fleet)))
        return [
            # From a number that an admin changes to a node that somebody has to repair.
            Change(quota=True),
            Change(emptied=rows),
            Change(rule=PairRule.NONE),
            *([Change(is_spread=True)] if spread(self.request) != self.request else []),
            *([Change(is_whole=True)] if whole(self.request) != self.request else []),
            Change(healed=rows),
        ]

    def smallest(self) -> tuple[Change, ...]:
        """Give sets of changes of which each is enough; nothing when nothing tried would be."""
        changes = self.everything()
        singles = [change for change in changes if self.answer(change)]
        candidates = singles or _smallest_set(self, changes)
        return tuple(small for full in candidates for small in _with_few_nodes(self, full))

    def lacks(self, change: Change) -> dict[int, Lack]:
        """Give what has to come free for a change, by node: what its places lack, if that will do.

        Else all that is in use there: which place is found also depends on what else is free.
        """
        fit = self.answer(change)
        if fit is None:
            return {}
        found = {row: _lack(self, fit, row) for row in sorted(change.emptied)}
        room = self.scene.room.twin().heal(change.healed)
        for row, lack in found.items():
            room.give(row, lack.gpus, lack.nics, dict(lack.amounts))
        scene = replace(self.scene, room=room, ignores_quota=change.quota)
        if scene.look(self.queue, change.loosening(self.request)):
            return found
        return {row: _in_use(self.scene, row) for row in sorted(change.emptied)}


def loosened(request: RequestClass, rule: PairRule | None) -> RequestClass:
    """Give the same gang with stricter required pair rules replaced by this one."""
    if rule is None:
        return request
    # A set that asks for less already keeps what it asks for, and nobody is told to loosen it.
    strict = LOOSER[: LOOSER.index(rule)]
    return RequestClass(
        pod_sets=tuple(
            replace(pod_set, pair=rule) if pod_set.pair in strict else pod_set
            for pod_set in request.pod_sets
        )
    )


def spread(request: RequestClass) -> RequestClass:
    """Give the same gang with required levels only preferred."""
    return RequestClass(
        pod_sets=tuple(
            replace(pod_set, is_level_required=False) if pod_set.level else pod_set
            for pod_set in request.pod_sets
        )
    )


def whole(request: RequestClass) -> RequestClass:
    """Give the same gang without slices."""
    return RequestClass(pod_sets=tuple(replace(each, slices=()) for each in request.pod_sets))


def _smallest_set(question: Question, changes: list[Change]) -> list[Change]:
    """Add changes up until the gang fits, then drop what is not needed."""
    needed = _enough(question, changes)
    # In the order of adding, so that of two equal sets the same one is told every time.
    for change in tuple(needed):
        rest = [other for other in needed if other is not change]
        if question.answer(_together(rest)):
            needed = rest
    return [_together(needed)] if needed else []


def _enough(question: Question, changes: list[Change]) -> list[Change]:
    """Give the first changes that are enough together; nothing when all of them are not."""
    sums = enumerate(accumulate(changes, Change.also), start=1)
    return changes[: next((size for size, total in sums if question.answer(total)), 0)]


def _together(changes: list[Change]) -> Change:
    return reduce(Change.also, changes, Change())


def _with_few_nodes(question: Question, change: Change) -> Iterator[Change]:
    """Keep only the nodes that the gang needs to be different; nothing when they are too many."""
    used = _rows(question.answer(change))
    smaller = replace(change, emptied=change.emptied & used, healed=change.healed & used)
    rows = sorted(smaller.emptied | smaller.healed)
    # On fewer emptied nodes a heuristic may miss what it found on all of them.
    if len(rows) > MAX_NODES or not question.answer(smaller):
        return
    for row, sparing in product(rows, (Change.not_emptying, Change.not_healing)):
        fewer = sparing(smaller, row)
        if fewer != smaller and question.answer(fewer):
            smaller = fewer
    yield smaller


def _rows(fit: Fit | None) -> frozenset[int]:
    places = [] if fit is None else [place for each in fit.places.values() for place in each]
    return frozenset(place.row for place in places)


def _lack(question: Question, fit: Fit, row: int) -> Lack:
    """Give what the pods placed on a node need beyond what is free there."""
    room = question.scene.room
    gpus = nics = 0
    needed = dict.fromkeys(room.fleet.resources, 0)
    for pod_set in question.request.pod_sets:
        for place in fit.places[pod_set.name]:
            if place.row == row:
                gpus, nics = gpus | place.gpu_mask, nics | place.nic_mask
                need = room.need(pod_set).tolist()
                needed = {
                    name: needed[name] + amount
                    for name, amount in zip(room.fleet.resources, need, strict=True)
                }
    state = room.state(row)
    return _beyond(question.scene, row, (gpus & ~state.gpu_free, nics & ~state.nic_free), needed)


def _in_use(scene: Scene, row: int) -> Lack:
    """Give everything that is in use on a node."""
    state, fleet = scene.room.state(row), scene.fleet
    whole = dict(zip(fleet.resources, fleet.total[row].tolist(), strict=True))
    masks = int(fleet.gpu_all[row]) & ~state.gpu_free, int(fleet.nic_all[row]) & ~state.nic_free
    return _beyond(scene, row, masks, whole)


def _beyond(scene: Scene, row: int, masks: tuple[int, int], needed: Mapping[str, int]) -> Lack:
    free = dict(zip(scene.fleet.resources, scene.room.state(row).free, strict=True))
    return Lack(
        gpus=masks[0],
        nics=masks[1],
        amounts=tuple(
            (name, amount - free[name])
            for name, amount in needed.items()
            if amount > free[name] and name not in {GPU, RDMA}
        ),
    )
