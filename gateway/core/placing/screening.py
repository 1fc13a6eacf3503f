"""Which of many gangs cannot fit now: a bound that says no only where placing would fail as well.

Each pod set is looked at alone, at its loosest. It keeps gangs that do not fit cheap, however many
of them wait; for those it lets through the placement decides.
"""

from collections.abc import Iterable, Mapping

import numpy as np

from gateway.core.devices.fleet import Bool, Int64
from gateway.core.jobs.request import PodSetRequest
from gateway.core.placing.attempts import PodSets
from gateway.core.placing.eligibility import Eligibility
from gateway.core.placing.room import Room
from gateway.core.queues.definitions import Flavor

Asked = tuple[PodSets, Mapping[str, Flavor]]
"""A gang and the flavor of each of its pod sets by name."""


def screen(room: Room, eligibility: Eligibility, gangs: Iterable[Asked]) -> Bool:
    """Give for each gang whether it might fit; False is certain."""
    screening = _Screening(room, eligibility)
    verdicts = [
        all(screening.might_fit(each, flavors[each.name]) for each in pod_sets)
        for pod_sets, flavors in gangs
    ]
    return np.array(verdicts, dtype=np.bool_)


class _Screening:
    """One state of a room; who asks for GPUs is shown only the nodes that have as many."""

    def __init__(self, room: Room, eligibility: Eligibility) -> None:
        self.room = room
        self.eligibility = eligibility
        gpus = np.bitwise_count(room.gpu_free).astype(np.int64)
        # Below any number of GPUs, also 0: an unavailable node takes nobody.
        self._gpus = np.where(room.is_available, gpus, -1)
        self._rows: dict[int, Int64] = {}

    def might_fit(self, pod_set: PodSetRequest, flavor: Flavor) -> bool:
        """Whether the nodes that a pod set may use, each for itself, have room for all its pods."""
        fits = self.room.shapes.fits(pod_set)
        rows = self._rows_with(fits.shape.wish.gpus)
        # Few numbers before many nodes: most gangs that cannot fit fail here.
        if not len(rows) or self.room.most(fits) < pod_set.count:
            return False
        usable = rows[self.eligibility.nodes(pod_set, flavor)[rows]]
        pods = fits.pods()[self.room.state_of[usable]]
        if not pod_set.required_level:
            return int(pods.sum(dtype=np.int64)) >= pod_set.count
        level = self.room.level(pod_set.level)
        # The first domain is that of the nodes without the label.
        by_domain = np.bincount(level.domain_of[usable], pods, len(level.rows))[1:]
        return bool(by_domain.max(initial=0) >= pod_set.count)

    def _rows_with(self, gpus: int) -> Int64:
        """Give the available nodes with at least so many free GPUs."""
        if gpus not in self._rows:
            self._rows[gpus] = np.flatnonzero(self._gpus >= gpus)
        return self._rows[gpus]
