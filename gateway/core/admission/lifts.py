"""What would let a gang start: changes that were tried on a copy of the state, never guessed.

Single changes first; if none is enough, changes are added in a fixed order until the gang fits, and
those that turn out not to be needed are dropped again. Each sentence admits the gang by itself.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import accumulate, product

from gateway.core.admission.trial import Fit, Scene
from gateway.core.jobs.request import RequestClass
from gateway.core.queues.definitions import Queue
from gateway.core.queues.limits import Shortage, raises_needed
from gateway.core.resources import GPU, RDMA
from gateway.core.resources.words import in_words, listed
from gateway.core.vocabulary import PairRule

MAX_NODES = 16
"""Largest set of nodes that is made minimal by dropping one at a time; larger ones are not told."""

LOOSER = (PairRule.SWITCH, PairRule.NUMA, PairRule.NODE, PairRule.NONE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A set of lifted limits."""

    quota: bool = False
    emptied: frozenset[int] = frozenset()
    """Rows of nodes on which everything comes free."""
    rule: PairRule | None = None
    healed: frozenset[int] = frozenset()

    def also(self, other: "Change") -> "Change":
        """Give both changes together."""
        return Change(
            quota=self.quota or other.quota,
            emptied=self.emptied | other.emptied,
            rule=other.rule or self.rule,
            healed=self.healed | other.healed,
        )

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
        if change not in self.answers:
            self.answers[change] = self._try(change)
        return self.answers[change]

    def _try(self, change: Change) -> Fit | None:
        room = self.scene.room.afresh().empty(change.emptied).heal(change.healed)
        scene = replace(self.scene, room=room, ignores_quota=change.quota)
        return scene.look(self.queue, loosened(self.request, change.rule))

    def everything(self) -> list[Change]:
        """Give each kind of change in full, in the order in which they are added up."""
        rows = frozenset(range(len(self.scene.fleet)))
        return [
            Change(quota=True),
            Change(emptied=rows),
            Change(rule=PairRule.NONE),
            Change(healed=rows),
        ]


def unblocking(scene: Scene, queue: Queue, request: RequestClass) -> tuple[str, ...]:
    """Give sentences of which each would admit the gang; empty when nothing tried would."""
    question = Question(scene, queue, request)
    changes = question.everything()
    singles = [change for change in changes if question.answer(change)]
    candidates = singles or _smallest_set(question, changes)
    return tuple(
        _words(question, change)
        for full in candidates
        for change in _with_few_nodes(question, full)
    )


def loosened(request: RequestClass, rule: PairRule | None) -> RequestClass:
    """Give the same gang with stricter required pair rules replaced by this one."""
    if rule is None:
        return request
    strict = LOOSER[: LOOSER.index(rule)]
    return RequestClass(
        pod_sets=tuple(
            replace(pod_set, pair=rule) if pod_set.pair in strict else pod_set
            for pod_set in request.pod_sets
        )
    )


def _smallest_set(question: Question, changes: list[Change]) -> list[Change]:
    """Add changes up until the gang fits, then drop what is not needed."""
    needed = _enough(question, changes)
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
    if len(rows) > MAX_NODES:
        return
    for row, sparing in product(rows, (Change.not_emptying, Change.not_healing)):
        fewer = sparing(smaller, row)
        if fewer != smaller and question.answer(fewer):
            smaller = fewer
    yield smaller


def _rows(fit: Fit | None) -> frozenset[int]:
    places = [] if fit is None else [place for each in fit.places.values() for place in each]
    return frozenset(place.row for place in places)


def _words(question: Question, change: Change) -> str:
    parts = (
        *_quota_words(question, change),
        *_room_words(question, change),
        *_rule_words(question, change),
        *_health_words(question, change),
    )
    return "; and ".join(parts)


def _health_words(question: Question, change: Change) -> Iterator[str]:
    if not change.healed:
        return
    names = question.scene.fleet.names
    yield f"{listed(names[row] for row in sorted(change.healed))} to be back in service"


def _rule_words(question: Question, change: Change) -> Iterator[str]:
    if change.rule is None:
        return
    enough = [rule for rule in LOOSER[1:] if question.answer(replace(change, rule=rule))]
    yield "accept pair rule " + " or ".join(f"'{rule}'" for rule in enough)


def _quota_words(question: Question, change: Change) -> Iterator[str]:
    fit = question.answer(change)
    if not change.quota or fit is None:
        return
    tree = question.scene.fresh_tree()
    raises = raises_needed(tree, question.queue.name, fit.charges)
    yield "raise " + listed(map(_raise_words, raises))


def _raise_words(lack: Shortage) -> str:
    amount = in_words(lack.pair[1], lack.missing)
    return f"the {lack.limit} of {lack.node} by {amount} of flavor {lack.pair[0]}"


def _room_words(question: Question, change: Change) -> Iterator[str]:
    """Say what the gang's own places lack, node by node."""
    fit = question.answer(change)
    if not change.emptied or fit is None:
        return
    names = question.scene.fleet.names
    parts = []
    for row in sorted(change.emptied):
        lacking = _lacking(question, fit, row)
        words = listed(in_words(name, amount) for name, amount in lacking.items() if amount > 0)
        parts.append(f"{words} to come free on {names[row]}")
    yield listed(parts)


def _lacking(question: Question, fit: Fit, row: int) -> dict[str, int]:
    """Give what the pods placed on a node need beyond what is free there."""
    room = question.scene.room
    lacking = {
        name: -amount
        for name, amount in zip(room.fleet.resources, room.free[row].tolist(), strict=True)
    }
    lacking[GPU] = lacking[RDMA] = 0
    for pod_set in question.request.pod_sets:
        for place in fit.places[pod_set.name]:
            if place.row != row:
                continue
            lacking[GPU] += (place.gpu_mask & ~int(room.gpu_free[row])).bit_count()
            lacking[RDMA] += (place.nic_mask & ~int(room.nic_free[row])).bit_count()
            for name, amount in zip(room.fleet.resources, room.need(pod_set).tolist(), strict=True):
                lacking[name] += amount
    return lacking
