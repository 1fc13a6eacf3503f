"""What all rooms of one fleet share: the states its nodes are in, its domains, what fits where."""

from collections.abc import Sequence

import numpy as np

from gateway.core.devices.fleet import Fleet, Int32
from gateway.core.devices.labels import LabelColumns
from gateway.core.placing.attempts import Prepared
from gateway.core.placing.levels import Level, Tier, level_of, nest_of, one_domain
from gateway.core.placing.shapes import Shapes
from gateway.core.placing.states import NodeStates, idle_states, present_states

SPARE_STATES = 8192
"""A table with more states than these and four for each node is begun again."""
MAX_COUNTS = 1 << 23
"""The same for the counts kept, one for each shape and state; 32 MiB."""


class Base:
    """One fleet in terms of node states; nothing here changes but what is remembered."""

    def __init__(self, fleet: Fleet, shapes: Shapes, state_of: Int32) -> None:
        """Keep the fleet, and the state of each of its nodes."""
        self.fleet = fleet
        self.shapes = shapes
        self.state_of = state_of
        self.domains = Domains(fleet)
        self.prepared = Prepared(shapes, fleet.names)
        self._idle: Int32 | None = None

    def idle(self) -> Int32:
        """Give the state each node would be in with nothing on it."""
        if self._idle is None:
            states = idle_states(self.fleet, np.arange(len(self.fleet)))
            self._idle = self.shapes.states.numbers_of(states)
        return self._idle

    def patched(self, fleet: Fleet, rows: Sequence[int]) -> "Base | None":
        """Give the base of a fleet in which only these nodes changed; None to begin anew."""
        states = self.shapes.states
        is_alike = (fleet.machines, fleet.resources) == (states.machines, states.resources)
        # State numbers mean masks of these machine types in these columns; others begin anew.
        if not is_alike or self._is_overgrown():
            return None
        chosen = np.array(rows, dtype=np.int64)
        later = Base(fleet, self.shapes, self.state_of.copy())
        later.state_of[chosen] = states.numbers_of(present_states(fleet, chosen))
        if self._idle is not None:
            later._idle = self._idle.copy()
            later._idle[chosen] = states.numbers_of(idle_states(fleet, chosen))
        if all(fleet.labels[row] == self.fleet.labels[row] for row in rows):
            later.domains = self.domains
            if all(fleet.taints[row] == self.fleet.taints[row] for row in rows):
                # The masks that go with these gangs are still the same.
                later.prepared = self.prepared
        return later

    def _is_overgrown(self) -> bool:
        states = len(self.shapes.states)
        too_many = states > 4 * len(self.fleet) + SPARE_STATES
        # Each shape keeps a count for each state, so it is the product that takes memory.
        return too_many or states * len(self.shapes) > MAX_COUNTS


class Domains:
    """The levels of one fleet, each worked out when first asked for."""

    def __init__(self, fleet: Fleet) -> None:
        """Start with none."""
        self._labels = LabelColumns(fleet.labels)
        self._levels: dict[str, Level] = {}
        self._nests: dict[tuple[str, ...], tuple[Tier, ...]] = {}
        self._nodes = len(fleet)

    def level(self, label: str) -> Level:
        """Give the domains of one node label."""
        if label not in self._levels:
            self._levels[label] = level_of(self._labels.column(label))
        return self._levels[label]

    def nest(self, labels: tuple[str, ...]) -> tuple[Tier, ...]:
        """Give the domains of several labels, each inside those before; no label is one domain."""
        if labels not in self._nests:
            levels = [self.level(each) if each else one_domain(self._nodes) for each in labels]
            self._nests[labels] = nest_of(levels, self._nodes)
        return self._nests[labels]


def base_of(fleet: Fleet) -> Base:
    """Give the base of a fleet that nothing is known of yet."""
    states = NodeStates(fleet.machines, fleet.resources)
    numbers = states.numbers_of(present_states(fleet, np.arange(len(fleet))))
    return Base(fleet, Shapes(states), numbers)
