"""Which nodes to keep free for a gang that waits for nodes alone: those that need fewest releases.

Nodes of one domain of the level that the gang requires, else of all it may use. They are emptied
one by one, those with least in use first, until the gang fits; it keeps those where it would stand
then. Judged on the fleet as the pass began, so that every state made of the same rows chooses the
same nodes.
"""

from collections.abc import Iterator

import numpy as np

from gateway.core.admission.asks import FlavorChoice, largest
from gateway.core.admission.trial import Scene
from gateway.core.devices.fleet import Bool, Fleet, Int64
from gateway.core.jobs.request import RequestClass
from gateway.core.placing.levels import NO_DOMAIN
from gateway.core.policies import named
from gateway.core.policies.placement import PLACEMENT, GangPlaces
from gateway.core.resources import CPU, GPU


def nodes_to_keep(scene: Scene, request: RequestClass, choice: FlavorChoice) -> Int64 | None:
    """Give the rows, sorted; None where even empty nodes of one domain would not do."""
    trial = _Trial(scene, request, choice)
    # One trial for those whom no nodes would do, instead of some for each domain.
    if not trial.fits(np.arange(len(scene.fleet))):
        return None
    in_use = _in_use(scene.fleet, request)
    best: tuple[int, int, Int64] | None = None
    for domain in trial.domains():
        # Stable: of nodes with equally much in use the first by name.
        rows = domain[np.argsort(in_use[domain], kind="stable")]
        kept = trial.fewest(rows)
        if kept is not None:
            found = int(in_use[kept].sum()), len(kept), kept
            # Domains come by name, so of equal ones the first stays.
            best = found if best is None or found[:2] < best[:2] else best
    return None if best is None else best[2]


def would_do(scene: Scene, request: RequestClass, choice: FlavorChoice, rows: Int64) -> bool:
    """Whether the gang fits these nodes once they are empty, and may use them as they are."""
    return _Trial(scene, request, choice).fits(rows)


class _Trial:
    """One gang on empty nodes."""

    def __init__(self, scene: Scene, request: RequestClass, choice: FlavorChoice) -> None:
        self._scene = scene
        self._request = request
        self._place = named("placement", PLACEMENT, scene.policies.placement)
        self._nodes = scene.nodes(request, choice)
        self._main = largest(request)

    def domains(self) -> Iterator[Int64]:
        """Give the usable nodes of each domain that the largest pods of the gang may share."""
        usable = self._nodes[self._main.name] & self._scene.fleet.is_available
        if not self._main.required_level:
            yield np.flatnonzero(usable)
            return
        level = self._scene.room.level(self._main.level)
        for number, rows in enumerate(level.rows):
            if number != NO_DOMAIN and usable[rows].any():
                yield rows[usable[rows]]

    def fewest(self, rows: Int64) -> Int64 | None:
        """Give where the gang stands on the shortest start of these nodes; None on no start."""
        places = self._on(rows)
        if places is None:
            return None
        low, high = 0, len(rows)
        # More nodes never hold less, so the first number that is enough can be bisected.
        while high - low > 1:
            middle = (low + high) // 2
            found = self._on(rows[:middle])
            low, high = (middle, high) if found is None else (low, middle)
            places = found or places
        # Small idle nodes stand first and may hold none of it; they are not kept for nothing.
        used = {each.row for name in places if self._is_bound(name) for each in places[name]}
        kept = np.array(sorted(used), dtype=np.int64)
        # Several large sets are placed by a heuristic, which may not find on less what it found.
        return kept if self.fits(kept) else np.sort(rows[:high])

    def fits(self, rows: Int64) -> bool:
        """Whether the gang fits these nodes alone, emptied."""
        return self._on(rows) is not None

    def _on(self, rows: Int64) -> GangPlaces | None:
        chosen: Bool = np.zeros(len(self._scene.fleet), dtype=np.bool_)
        chosen[rows] = True
        # A small Master without a place of its own rule may sit anywhere else.
        nodes = {
            name: mask & chosen if self._is_bound(name) else mask
            for name, mask in self._nodes.items()
        }
        room = self._scene.room.afresh().empty(rows)
        return self._place(room, self._request.pod_sets, nodes)

    def _is_bound(self, name: str) -> bool:
        asked = {each.name: dict(each.per_pod).get(GPU, 0) for each in self._request.pod_sets}
        return name == self._main.name or asked[name] > 0


def _in_use(fleet: Fleet, request: RequestClass) -> Int64:
    """Give what has to come free on each node: GPUs, or for gangs without GPUs CPU."""
    if dict(request.total).get(GPU, 0):
        used: Int64 = np.bitwise_count(fleet.gpu_all & ~fleet.gpu_free).astype(np.int64)
        return used
    column = fleet.resources.index(CPU)
    left: Int64 = fleet.total[:, column] - fleet.free[:, column]
    return left
