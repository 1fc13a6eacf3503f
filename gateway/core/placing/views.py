"""Pods of one shape that fit on each allowed node and in each domain, kept right as nodes change.

A view follows the list of changed nodes and looks at those only. It decides nothing.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from gateway.core.devices.fleet import Bool, Int32, Int64
from gateway.core.placing.fits import PodFits
from gateway.core.placing.levels import Level

MANY_CHANGES = 64
"""More changed nodes than this are cheaper to count all at once."""
MAX_VIEWS = 128
MAX_CHANGES = 1 << 16
"""Changed nodes that are listed; past it every view counts everything again."""
UNREAD = -1
NO_ROOM = np.iinfo(np.int64).max


class Nodes(NamedTuple):
    """What views look at: columns of one room that change in place, a row for each node."""

    state_of: Int32
    is_available: Bool
    fullness: Int64


class View:
    """One shape on one mask of nodes, summed by the domains of one level."""

    def __init__(self, fits: PodFits, allowed: Bool, level: Level | None) -> None:
        """Start unread; the first update counts everything."""
        self.fits = fits
        self.allowed = allowed
        self.level = level
        self.pods: Int32 = np.zeros(len(allowed), dtype=np.int32)
        """By node."""
        self.by_domain: Int64 = np.zeros(1, dtype=np.int64)
        """By domain; without a level all nodes are in one."""
        self.order: Int64 = np.zeros(len(allowed), dtype=np.int64)
        """By node: what it has left, NO_ROOM where not even one pod fits."""
        self.total = 0
        self.seen = UNREAD
        """Length of the list of changes that this view has followed."""

    def fullest(self) -> int:
        """Give the node with room for a pod that has least left; the first of equal ones."""
        return int(self.order.argmin())

    def count_all(self, nodes: Nodes) -> None:
        """Count every node."""
        # Allowed by rules never changes for a view; available does, so it is asked each time.
        usable = self.allowed & nodes.is_available
        self.pods = np.where(usable, self.fits.pods()[nodes.state_of], 0).astype(np.int32)
        self.order = np.where(self.pods > 0, nodes.fullness, NO_ROOM)
        self.total = int(self.pods.sum(dtype=np.int64))
        if self.level is not None:
            # With weights bincount counts in floats, exact up to 2^53 pods.
            sums = np.bincount(self.level.domain_of, self.pods, len(self.level.rows))
            self.by_domain = sums.astype(np.int64)

    def count_again(self, rows: Sequence[int], nodes: Nodes) -> None:
        """Count these nodes only; one that is named twice does no harm."""
        if len(rows) > MANY_CHANGES:
            self.count_all(nodes)
            return
        pods_in = self.fits.pods()
        for row in rows:
            is_usable = self.allowed[row] and nodes.is_available[row]
            pods = int(pods_in[nodes.state_of[row]]) if is_usable else 0
            self.order[row] = nodes.fullness[row] if pods else NO_ROOM
            more = pods - int(self.pods[row])
            # Most changes leave the pods of most shapes as they were, and then nothing is summed.
            if more:
                self.pods[row] = pods
                self.total += more
                if self.level is not None:
                    self.by_domain[self.level.domain_of[row]] += more


class Views:
    """The views of one room; what has changed since is counted when a view is asked for."""

    def __init__(self, nodes: Nodes) -> None:
        """Look at these nodes."""
        self._nodes = nodes
        self._views: dict[tuple[PodFits, int, str], View] = {}
        self._changed: list[int] = []

    def changed(self, rows: Iterable[int]) -> None:
        """Note that these nodes are not what they were."""
        # One list for all views, each remembering how far it has read it.
        self._changed.extend(rows)

    def known(self, fits: PodFits, allowed: Bool, label: str) -> View | None:
        """Give a view that was asked for before, up to date."""
        view = self._views.get((fits, id(allowed), label))
        if view is not None:
            self._bring_up(view)
        return view

    def add(self, view: View, label: str) -> View:
        """Keep and give a new view."""
        if len(self._views) >= MAX_VIEWS:
            # The oldest goes; whoever still needs it counts it again.
            del self._views[next(iter(self._views))]
        # The view holds the mask, so that no other mask can come to have its identity.
        self._views[view.fits, id(view.allowed), label] = view
        self._bring_up(view)
        return view

    def _bring_up(self, view: View) -> None:
        # Counting everything once is cheaper than to follow so long a list, or to keep it.
        if len(self._changed) > MAX_CHANGES:
            self._changed.clear()
            for each in self._views.values():
                each.seen = UNREAD
        if view.seen == UNREAD:
            view.count_all(self._nodes)
        elif view.seen < len(self._changed):
            view.count_again(self._changed[view.seen :], self._nodes)
        view.seen = len(self._changed)
