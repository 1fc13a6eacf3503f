"""What is still free: the state of every node, changed by taking pods and by new inventory.

A trial takes room node by node; a failed one is thrown away by going back to a mark. A room may
live on from cycle to cycle; it then equals a new one of the same fleet. Not for two threads.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gateway.core.devices.fleet import Bool, Fleet, Int32, Int64
from gateway.core.devices.selection import MANY_PODS
from gateway.core.jobs.request import PodSetRequest, RequestClass
from gateway.core.placing.attempts import Ask, Attempt
from gateway.core.placing.base import Base, base_of
from gateway.core.placing.fits import PodFits
from gateway.core.placing.levels import Level, Tier
from gateway.core.placing.shapes import wish_of
from gateway.core.placing.states import NodeState
from gateway.core.placing.views import Nodes, View, Views
from gateway.core.resources import GPU, PODS, RDMA
from gateway.core.vocabulary import PairRule

if TYPE_CHECKING:
    from gateway.core.placing.typical import Typical

__all__ = ["PodPlace", "Room", "wish_of", "with_rule"]


class PodPlace(NamedTuple):
    """One pod's node (row) and devices."""

    row: int
    gpu_mask: int
    nic_mask: int


class Room:
    """Free amounts and device masks; rows are nodes in the order of the fleet."""

    def __init__(self, fleet: Fleet, base: Base | None = None) -> None:
        """Start from the fleet's free state; `base` is that of another room of this fleet."""
        self._start(base or base_of(fleet))

    def _start(self, base: Base) -> None:
        self.base = base
        self.shapes = base.shapes
        # A node is one number here; what the number means is shared by all rooms of the fleet.
        self.state_of: Int32 = base.state_of.copy()
        """Number of each node's state."""
        self.is_available: Bool = base.fleet.is_available.copy()
        self.fullness: Int64 = self._fullness_of(self.state_of)
        """The smaller, the less a node has free; GPUs count first, then CPU."""
        # Whole former states: giving back never computes, so it cannot be off by rounding or order.
        self._taken: list[tuple[int, int]] = []
        """Nodes with the states they were in, in the order in which they were taken from."""
        self._counts: Int64 | None = None
        """Available nodes by state, when counted since the last change."""
        self.typical: Typical | None = None
        """What is typically asked of this fleet; for policies that care, and set by who knows."""
        self._forget()

    @property
    def fleet(self) -> Fleet:
        """The fleet whose nodes these are."""
        return self.base.fleet

    @property
    def free(self) -> Int64:
        """What each node has free, in the fleet's resource columns; may be below nothing."""
        free: Int64 = self.shapes.states.columns().free[self.state_of]
        return free

    @property
    def gpu_free(self) -> Int64:
        """Each node's free GPUs as a mask."""
        free: Int64 = self.shapes.states.columns().gpu_free[self.state_of]
        return free

    @property
    def nic_free(self) -> Int64:
        """Each node's free NICs as a mask."""
        free: Int64 = self.shapes.states.columns().nic_free[self.state_of]
        return free

    def afresh(self) -> "Room":
        """Give another room in the fleet's own state, that shares what is known of its states."""
        other = Room(self.fleet, self.base)
        other.typical = self.typical
        return other

    def twin(self) -> "Room":
        """Give another room in this one's present state, with what was taken taken for good."""
        other = self.afresh()
        other.state_of[:] = self.state_of
        other.is_available[:] = self.is_available
        other.fullness[:] = self.fullness
        return other

    def sync(self, fleet: Fleet, rows: Sequence[int] | None) -> None:
        """Give back everything and take a later fleet, in which only these nodes changed.

        Args:
            fleet: its nodes are the same, in the same order, unless `rows` is None.
            rows: nodes of which anything changed; None for "anything".
        """
        # What a pass took is not in the fleet that comes; keeping it would count it twice.
        self.back_to(0)
        base = None if rows is None else self.base.patched(fleet, rows)
        if rows is None or base is None:
            self._start(base_of(fleet))
            return
        # Other labels, other domains: views that were summed by domain mean nothing any more.
        if base.domains is not self.base.domains:
            self._forget()
        self.base = base
        # In place, because views look at this very array.
        self.is_available[:] = fleet.is_available
        chosen = np.array(rows, dtype=np.int64)
        self.state_of[chosen] = base.state_of[chosen]
        self.fullness[chosen] = self._fullness_of(base.state_of[chosen])
        self._note(rows)

    def empty(self, rows: Iterable[int]) -> "Room":
        """Treat everything on these nodes as free, for good."""
        chosen = list(rows)
        # What idle nodes are like is worked out once for a fleet, and shared by all its rooms.
        self.state_of[chosen] = self.base.idle()[chosen]
        self.fullness = self._fullness_of(self.state_of)
        self._forget()
        return self

    def give(self, row: int, gpus: int, nics: int, amounts: Mapping[str, int]) -> "Room":
        """Treat more of a node as free, for good: devices by mask, amounts by resource."""
        before = self.state(row)
        free = tuple(
            amount + amounts.get(name, 0)
            for name, amount in zip(self.fleet.resources, before.free, strict=True)
        )
        after = before._replace(
            gpu_free=before.gpu_free | gpus, nic_free=before.nic_free | nics, free=free
        )
        self._set(row, self.shapes.states.number_of(after))
        return self

    def heal(self, rows: Iterable[int]) -> "Room":
        """Treat these nodes as available, for good."""
        self.is_available[list(rows)] = True
        self._forget()
        return self

    def mark(self) -> int:
        """Give a mask to go back to."""
        return len(self._taken)

    def back_to(self, mark: int) -> None:
        """Give back everything taken since the mark."""
        # Backwards, so that a node that was taken from often ends in its first state, set once.
        earliest = dict(reversed(self._taken[mark:]))
        del self._taken[mark:]
        for row, state in earliest.items():
            self._set(row, state)

    def take(self, place: PodPlace, pod_set: PodSetRequest) -> None:
        """Take one pod's amounts and devices."""
        before = self.state(place.row)
        after = self.shapes.fits(pod_set).less(before, place.gpu_mask, place.nic_mask)
        self._change(place.row, self.shapes.states.number_of(after))

    def take_pods(self, row: int, fits: PodFits, count: int) -> list[PodPlace]:
        """Take up to that many pods of a shape on one node; each leaves enough for the next."""
        taken = fits.taking(int(self.state_of[row]), count)
        self._change(row, taken.state)
        return [PodPlace(row, gpus, nics) for gpus, nics in taken.masks]

    def need(self, pod_set: PodSetRequest) -> Int64:
        """Give one pod's need in the fleet's resource columns."""
        return np.array(self.shapes.need(pod_set), dtype=np.int64)

    def capacity(self, pod_set: PodSetRequest, allowed: Bool) -> Int64:
        """Give how many pods of the set each node could take now, at most the whole set."""
        pods = np.minimum(self.shapes.fits(pod_set).pods()[self.state_of], pod_set.count)
        return np.where(allowed & self.is_available, pods, 0).astype(np.int64)

    def most(self, fits: PodFits) -> int:
        """Give how many pods of a shape fit on all available nodes, whoever may use them."""
        if self._counts is None:
            # Nodes by state: a few hundred numbers instead of thousands of nodes.
            self._counts = np.bincount(self.state_of[self.is_available]).astype(np.int64)
        return int(self._counts @ fits.pods()[: len(self._counts)])

    def attempts(
        self, pod_sets: tuple[PodSetRequest, ...], nodes: Mapping[str, Bool]
    ) -> tuple[Attempt, ...]:
        """Give a gang prepared for placing; masks are told apart by identity and never change."""
        return self.base.prepared.attempts(pod_sets, nodes)

    def view(self, ask: Ask) -> View:
        """Give where pods of a set fit now, by node and by domain of its level."""
        known = self._views.known(ask.fits, ask.allowed, ask.label)
        if known is not None:
            return known
        level = self.level(ask.label) if ask.label else None
        return self._views.add(View(ask.fits, ask.allowed, level), ask.label)

    def has_room(self, ask: Ask) -> bool:
        """Whether a pod set alone fits; cheap to answer with no."""
        return self.roomy(ask) is not None

    def roomy(self, ask: Ask) -> View | None:
        """Give where pods of a set fit now, if all of them do when they are alone."""
        known = self._views.known(ask.fits, ask.allowed, ask.label)
        if known is None:
            if self.most(ask.fits) < ask.count:
                return None
            known = self.view(ask)
        return known if known.total >= ask.count else None

    def level(self, label: str) -> Level:
        """Give the domains of one node label."""
        return self.base.domains.level(label)

    def nest(self, labels: tuple[str, ...]) -> tuple[Tier, ...]:
        """Give the domains of several node labels, each inside those before it."""
        return self.base.domains.nest(labels)

    def free_of(self, resource: str) -> Int64:
        """Give what each node has free of one resource; nothing where nobody has it."""
        if resource in self.fleet.resources:
            return self.free[:, self.fleet.resources.index(resource)]
        if resource not in {GPU, RDMA}:
            return np.zeros(len(self.fleet), dtype=np.int64)
        mask = self.gpu_free if resource == GPU else self.nic_free
        return np.bitwise_count(mask).astype(np.int64)

    def free_sums(self, usable: Bool) -> dict[str, int]:
        """Give what these nodes have free together; pods without end where nobody counts them."""
        amounts = zip(self.fleet.resources, self.free[usable].sum(axis=0).tolist(), strict=True)
        return {
            PODS: MANY_PODS,
            **dict(amounts),
            GPU: int(np.bitwise_count(self.gpu_free[usable]).sum()),
            RDMA: int(np.bitwise_count(self.nic_free[usable]).sum()),
        }

    def state(self, row: int) -> NodeState:
        """Give what two nodes must share to be as good as each other for any pod."""
        return self.shapes.states.states[int(self.state_of[row])]

    def _change(self, row: int, state: int) -> None:
        self._taken.append((row, int(self.state_of[row])))
        self._set(row, state)

    def _set(self, row: int, state: int) -> None:
        self.state_of[row] = state
        self.fullness[row] = self.shapes.states.fullness[state]
        self._note((row,))

    def _note(self, rows: Iterable[int]) -> None:
        self._views.changed(rows)
        self._counts = None

    def _forget(self) -> None:
        self._views = Views(Nodes(self.state_of, self.is_available, self.fullness))
        self._counts = None

    def _fullness_of(self, states: Int32) -> Int64:
        fullness: Int64 = np.array(self.shapes.states.fullness, dtype=np.int64)[states]
        return fullness


def with_rule(request: RequestClass, rule: PairRule) -> RequestClass:
    """Give the same gang under one pair rule for all its pods."""
    return RequestClass(pod_sets=tuple(replace(each, pair=rule) for each in request.pod_sets))
