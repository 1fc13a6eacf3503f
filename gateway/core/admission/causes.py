"""Causes of waiting in words with counts: nodes by what is wrong with them, quota step by step."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from gateway.core.admission.alignment import misalignments
from gateway.core.admission.asks import flavors_of
from gateway.core.admission.slice_causes import slice_cause, slices_in_words
from gateway.core.admission.trial import Scene
from gateway.core.admission.types import Cause, QuotaStep
from gateway.core.devices.fleet import Bool
from gateway.core.jobs.request import PodSetRequest, RequestClass
from gateway.core.placing.levels import NO_DOMAIN
from gateway.core.placing.room import Room
from gateway.core.queues.definitions import Flavor, Queue
from gateway.core.queues.limits import Shortage
from gateway.core.queues.tree import Pair, QuotaTree, node_available
from gateway.core.resources import GPU, PODS, RDMA
from gateway.core.resources.words import counted, in_words, listed
from gateway.core.vocabulary import Reason

Trouble = tuple[Reason, str]


def quota_causes(short: Iterable[Shortage]) -> tuple[Cause, ...]:
    """Give one cause for each pair that quota lacks."""
    return tuple(map(_quota_cause, short))


def _quota_cause(lack: Shortage) -> Cause:
    return Cause(
        reason=lack.reason,
        detail=f"asks for {in_words(lack.pair[1], lack.requested)} of flavor {lack.pair[0]}, "
        f"{max(0, lack.available)} available: the {lack.limit} of {lack.node} binds",
    )


def quota_path(tree: QuotaTree, queue: str, charges: Mapping[Pair, int]) -> tuple[QuotaStep, ...]:
    """Give the numbers at each node from the queue to the root, for every counted pair."""
    return tuple(
        QuotaStep(
            node=node.name,
            flavor=pair[0],
            resource=pair[1],
            used=node.used.get(pair, 0),
            nominal=node.nominal(pair),
            available=node_available(node, pair),
            requested=amount,
        )
        for pair, amount in tree.counted(queue, charges).items()
        for node in tree.path(queue)
    )


def node_causes(scene: Scene, queue: Queue, request: RequestClass) -> tuple[Cause, ...]:
    """Count nodes by what keeps a pod away, most frequent first, for each pod set in trouble.

    A node that lacks several things counts for each of them. Where every pod set has room enough
    on its own, the causes are those of the one that asks for most; nothing where quota alone is in
    the way.
    """
    if not len(scene.fleet):
        return (Cause(reason=Reason.NODES_UNAVAILABLE, detail="no node is known yet"),)
    passing = _passing_flavors(scene, queue, request)
    # Nodes that would take it are no cause of waiting.
    if not passing and replace(scene, ignores_quota=True).look(queue, request):
        return ()
    views = [
        _PodSetView(scene, queue, pod_set, passing.get(pod_set.name))
        for pod_set in request.pod_sets
    ]
    # Master and Worker often lack the same; told once is enough.
    return tuple(dict.fromkeys(_told(views)))


def pieces_cause(scene: Scene, queue: Queue, request: RequestClass) -> tuple[Cause, ...]:
    """Say how the free GPUs lie apart, where enough are free in all; nothing for other gangs."""
    offered = {flavor.name for flavor in flavors_of(queue, scene.flavors)}
    is_offered = [name in offered for name in scene.eligibility.flavor_of]
    usable = scene.room.is_available & np.array(is_offered, dtype=np.bool_)
    free = scene.room.free_of(GPU)[usable]
    if not dict(request.total).get(GPU, 0) or not len(free):
        return ()
    words = f"{in_words(GPU, int(free.sum()))} free in all, at most {int(free.max())} on one node"
    return (Cause(reason=Reason.FRAGMENTED_DEVICES, detail=words),)


def _told(views: Sequence["_PodSetView"]) -> Iterator[Cause]:
    # Capacity counts each pod set as if it was alone, so this may be empty though nothing fits.
    in_trouble = [view for view in views if view.is_in_trouble]
    if not in_trouble:
        heaviest = max(views, key=lambda view: _weight(view.pod_set))
        yield heaviest.gang_cause()
        in_trouble = [heaviest]
    for view in in_trouble:
        yield from view.causes()


class _PodSetView:
    """One pod set against all nodes, each node under its own flavor."""

    def __init__(
        self, scene: Scene, queue: Queue, pod_set: PodSetRequest, passing: set[str] | None
    ) -> None:
        self.pod_set = pod_set
        self.state = scene.room
        offered = flavors_of(queue, scene.flavors)
        self.refusals = _refusals(scene, offered, pod_set, passing)
        self.allowed: Bool = np.array([not why for why in self.refusals], dtype=np.bool_)
        self.capacity = scene.room.capacity(pod_set, self.allowed)
        self.room = int(self.capacity.sum())
        self.together = self._best_domain() if pod_set.required_level else None
        """Most pods that one domain of the required level has room for."""
        self.sliced = slice_cause(self.state, pod_set, self.capacity)
        """That too few of its slices have room."""

    def causes(self) -> Iterator[Cause]:
        """Give a cause for each kind of trouble, and what room there is."""
        total = len(self.refusals)
        troubles = [*self._rule_troubles(), *self._room_troubles()]
        for count, (reason, words) in sorted(troubles, key=lambda each: (-each[0], each[1])):
            detail = f"{count} of {total} nodes: {words}"
            yield Cause(reason=reason, detail=detail, count=count, total=total)
        if 0 < self.room < self.pod_set.count:
            room = counted(self.room, f"{self.pod_set.name} pod")
            words = f"{room}; the gang has {self.pod_set.count}"
            yield self._fitting(Reason.GANG_DOES_NOT_FIT, words)
        if self.together is not None and self.together < self.pod_set.count <= self.room:
            yield self._level_cause(self.together)
        elif self.sliced is not None and self.pod_set.count <= self.room:
            yield self.sliced

    @property
    def is_in_trouble(self) -> bool:
        """Whether its pods have too little room, or too little in one domain, or in slices."""
        most = self.room if self.together is None else self.together
        return most < self.pod_set.count or self.sliced is not None

    def _best_domain(self) -> int:
        sums = np.bincount(self.state.level(self.pod_set.level).domain_of, self.capacity)
        return int(sums[NO_DOMAIN + 1 :].max(initial=0))

    def _level_cause(self, together: int) -> Cause:
        """Give the cause that there is room, but not in one domain."""
        domains = len(self.state.level(self.pod_set.level).rows) - 1
        words = counted(together, f"{self.pod_set.name} pod")
        best = f"in the best of {counted(domains, 'domain')} of {self.pod_set.level}"
        detail = f"room for {words} {best}; the gang has {self.pod_set.count}"
        return Cause(reason=Reason.FRAGMENTED_DEVICES, detail=detail, total=domains)

    def gang_cause(self) -> Cause:
        """Give the cause that pod sets have room alone, and not together."""
        words = f"a {self.pod_set.name} pod, but not for the whole gang at once"
        if self.pod_set.slices:
            words += f", in {slices_in_words(self.pod_set.slices)}"
        return self._fitting(Reason.FRAGMENTED_DEVICES, words)

    def _fitting(self, reason: Reason, words: str) -> Cause:
        """Count the nodes with room for a pod at least."""
        fitting, total = int(np.count_nonzero(self.capacity)), len(self.refusals)
        detail = f"{fitting} of {total} nodes: room for {words}"
        return Cause(reason=reason, detail=detail, count=fitting, total=total)

    def _rule_troubles(self) -> Iterator[tuple[int, Trouble]]:
        """Count the nodes that are out whatever is free on them."""
        words = Counter(filter(None, self.refusals))
        # Only nodes that its rules allow: others would be no help even in good health.
        out_of_service = self.allowed & ~self.state.is_available
        health = self.state.fleet.health
        words.update(health[row].value for row in np.flatnonzero(out_of_service))
        return ((count, (Reason.NODES_UNAVAILABLE, why)) for why, count in words.items())

    def _room_troubles(self) -> Iterator[tuple[int, Trouble]]:
        """Count the usable nodes without room for a pod by what they lack."""
        # Nodes with room for a pod at least are no trouble, however few pods they take.
        full = self.allowed & self.state.is_available & (self.capacity == 0)
        unexplained = full.copy()
        for words, lacking in _lacking(self.state, self.pod_set):
            unexplained &= ~lacking
            if (full & lacking).any():
                yield int((full & lacking).sum()), (Reason.GANG_DOES_NOT_FIT, words)
        for count, words in misalignments(self.state, self.pod_set, unexplained):
            yield count, (Reason.NO_ALIGNED_DEVICES, words)


def _passing_flavors(scene: Scene, queue: Queue, request: RequestClass) -> dict[str, set[str]]:
    """Give the flavors that quota still allows, by pod set; empty when it allows none."""
    passing: dict[str, set[str]] = {}
    for choice, _ in scene.passing(queue, request):
        for name, flavor in choice.items():
            passing.setdefault(name, set()).add(flavor.name)
    return passing


def _refusals(
    scene: Scene, flavors: list[Flavor], pod_set: PodSetRequest, passing: set[str] | None
) -> list[str]:
    """Say for each node why it is out; only the flavor that a node belongs to has a say."""
    refusals = {flavor.name: scene.eligibility.refusals(pod_set, flavor) for flavor in flavors}
    names = listed(sorted(refusals))
    found = []
    for row, name in enumerate(scene.eligibility.flavor_of):
        if name not in refusals:
            found.append(f"not of flavor {names}")
        elif passing is not None and name not in passing:
            found.append(f"of flavor {name}, for which quota is not enough")
        else:
            found.append(refusals[name][row])
    return found


def _lacking(room: Room, pod_set: PodSetRequest) -> Iterator[tuple[str, Bool]]:
    """Give each thing a pod needs, as words for its absence and a mask of the nodes without it."""
    for name, amount in pod_set.per_pod:
        kind = "fewer than" if name in {GPU, RDMA} else "less than"
        words = f"{kind} {in_words(name, amount).replace(' ', ' free ', 1)}"
        yield words, room.free_of(name) < amount
    # Never in what a pod asks for, since every pod takes one of the kubelet's maxPods.
    yield "no pod may be added", room.free_of(PODS) < 1


def _weight(pod_set: PodSetRequest) -> tuple[int, int]:
    wanted = dict(pod_set.per_pod)
    return wanted.get(GPU, 0), wanted.get(RDMA, 0)
