"""Finding a place for a whole gang under one choice of rules, or leaving the room as it was.

Required levels choose the domains first, the fullest that can take their pod sets; then the pod
sets fill nodes. Exact where at most one pod set has more than one pod.
"""

from collections.abc import Iterator
from itertools import product

import numpy as np

from gateway.core.devices.fleet import Int64
from gateway.core.placing.attempts import Ask, Attempt
from gateway.core.placing.filling import Area, GangPlaces, fill_all, fill_view
from gateway.core.placing.levels import NO_DOMAIN
from gateway.core.placing.room import Room
from gateway.core.placing.slicing import place_slices
from gateway.core.placing.views import View

ANYWHERE: tuple[None, frozenset[int]] = (None, frozenset())
"""No domain to keep to, and no node that the gang uses already."""


def place(room: Room, attempt: Attempt) -> GangPlaces | None:
    """Take room for every pod of a gang, or for none."""
    if len(attempt.asks) == 1 and not attempt.levels and not attempt.slicing:
        return _place_alone(room, attempt.asks[0])
    if not all(room.has_room(ask) for ask in attempt.asks):
        return None
    for area in _areas(room, attempt):
        places = _place_in(room, attempt, area)
        if places is not None:
            return places
    return None


def _place_in(room: Room, attempt: Attempt, area: Area) -> GangPlaces | None:
    """Place a gang on the chosen domains."""
    if attempt.slicing:
        return place_slices(room, attempt.slicing, area)
    places = fill_all(room, attempt.asks, area)
    # A single pod may stand in the way of the others: try it on every kind of node.
    return places or _Search(room, attempt, area).rest(attempt.singles_first)


def _place_alone(room: Room, ask: Ask) -> GangPlaces | None:
    """Place a gang of one pod set that may go anywhere, which most gangs are: nothing to search."""
    view = room.roomy(ask)
    if view is None:
        return None
    if ask.count == 1 and not ask.spread:
        # What most gangs come down to, so it is kept short.
        return {ask.name: room.take_pods(view.fullest(), ask.fits, 1)}
    # With room for all pods somewhere, filling one node after the other finds it.
    found = fill_view(room, view, ask, ANYWHERE)
    return None if found is None else {ask.name: found}


def _areas(room: Room, attempt: Attempt) -> Iterator[Area]:
    """Give the domains to try, one for each required level."""
    orders = [_domains(room, label, asks) for label, asks in attempt.levels]
    if len(orders) == 1:
        # Nearly always, and nearly always the first domain will do.
        yield from orders[0]
        return
    for chosen in product(*orders):
        yield {label: rows for each in chosen for label, rows in each.items()}


def _domains(room: Room, label: str, asks: tuple[Ask, ...]) -> Iterator[Area]:
    """Give the domains with room for each of these pod sets, those with least left first."""
    needed: dict[View, int] = {}
    for ask in asks:
        view = room.view(ask)
        needed[view] = needed.get(view, 0) + ask.count
    fitting = np.logical_and.reduce([view.by_domain >= count for view, count in needed.items()])
    # Nodes without the label share nothing with each other.
    fitting[NO_DOMAIN] = False
    (domains,) = fitting.nonzero()
    # The last key of lexsort is the first to sort by, and the heaviest pod set decides.
    order = np.lexsort([view.by_domain[domains] for view in reversed(needed)])
    rows = room.level(label).rows
    for domain in domains[order].tolist():
        yield {label: rows[domain]}


class _Search:
    """Tries single pods on each kind of node, and the other pod sets around them."""

    def __init__(self, room: Room, attempt: Attempt, area: Area) -> None:
        self.room = room
        self.attempt = attempt
        self.area = area

    def rest(self, asks: tuple[Ask, ...]) -> GangPlaces | None:
        """Place these, the first on each kind of node; the last just fills."""
        first, *others = asks
        # Sets of several pods just fill: trying all their spreads would be exponential.
        if not others or first.count > 1:
            return fill_all(self.room, asks, self.area)
        mark = self.room.mark()
        for row in self._different_nodes(first):
            found = self.room.take_pods(row, first.fits, 1)
            places = self.rest(tuple(others)) if found else None
            if places is not None:
                return {first.name: found, **places}
            self.room.back_to(mark)
        return None

    def _different_nodes(self, ask: Ask) -> list[int]:
        """Give one node of each kind that can take a pod, fullest first."""
        pods = self.room.view(ask).pods
        rows = np.flatnonzero(pods)
        if ask.level:
            rows = self.area[ask.level][pods[self.area[ask.level]] > 0]
        rows = rows[np.argsort(self.room.fullness[rows], kind="stable")]
        kinds = self.room.state_of[rows].astype(np.int64)
        for each in self.attempt.asks:
            # Nodes of one state still differ if another pod set may use one and not the other.
            kinds = 2 * kinds + self._may_use(each, rows)
        firsts = np.sort(np.unique(kinds, return_index=True)[1])
        return list(map(int, rows[firsts]))

    def _may_use(self, ask: Ask, rows: Int64) -> Int64:
        allowed = ask.allowed[rows]
        if ask.level:
            allowed = allowed & np.isin(rows, self.area[ask.level])
        return allowed.astype(np.int64)
