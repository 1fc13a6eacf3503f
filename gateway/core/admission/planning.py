"""The cycle: head after head, admitted while it fits, until nobody is left or the budget ends.

Best effort: a head that does not fit is set aside, and others of its queue and of other queues may
pass. A request class that failed once in a queue is not tried again for another job of that queue.
"""

from dataclasses import dataclass, field

import numpy as np

from gateway.core.admission.diagnosis import ReasonFinder
from gateway.core.admission.trial import Fit, Scene, charges_of, new_scene
from gateway.core.admission.types import (
    Admit,
    Charge,
    ClassHold,
    CyclePlan,
    Hold,
    PodPlacement,
    Policies,
    Snapshot,
)
from gateway.core.jobs.request import RequestClass
from gateway.core.policies import named
from gateway.core.policies.fairness import FAIRNESS, Candidate
from gateway.core.policies.ordering import ORDERING
from gateway.core.vocabulary import QueueState, Reason

ClassKey = tuple[str, int]
"""(queue name, class index)."""


def plan_cycle(snapshot: Snapshot, policies: Policies, now_us: int, budget: int) -> CyclePlan:
    """Decide for every waiting job: admit it onto exact devices, or hold it with a reason.

    Args:
        snapshot: the whole state; never changed.
        policies: names of the policies in force.
        now_us: present instant, microseconds since the epoch; nothing depends on it yet.
        budget: candidates to look at; the rest is held as NotReached.

    Raises:
        InvalidInput: a policy of that name does not exist, or the quota tree is broken.
    """
    del now_us
    cycle = _Cycle(snapshot=snapshot, policies=policies, scene=new_scene(snapshot, policies))
    cycle.line_up()
    for _ in range(budget):
        if not cycle.step():
            break
    return cycle.plan()


@dataclass(slots=True, kw_only=True)
class _Cycle:
    """Progress of one pass."""

    snapshot: Snapshot
    policies: Policies
    scene: Scene
    lines: dict[str, list[int]] = field(default_factory=dict)
    """Rows still to be looked at by queue, next one last."""
    admits: list[Admit] = field(default_factory=list)
    failed: dict[ClassKey, int] = field(default_factory=dict)
    """Class that did not fit, with the number of admissions before it failed."""

    def line_up(self) -> None:
        """Order each open queue's jobs."""
        order = named("ordering", ORDERING, self.policies.ordering)
        waiting = self.snapshot.waiting
        for index, queue in enumerate(self.snapshot.queues):
            rows = np.flatnonzero(waiting.queue == index)
            if queue.state is QueueState.OPEN and len(rows):
                self.lines[queue.name] = order(waiting, rows)[::-1].tolist()

    def step(self) -> bool:
        """Look at the next candidate; False when nobody is left."""
        heads = {}
        for queue in sorted(self.lines):
            row = self._head(queue)
            if row is not None:
                heads[queue] = self._candidate(queue, row)
        if not heads:
            return False
        choose = named("fairness", FAIRNESS, self.policies.fairness)
        self._judge(choose(self.scene.tree, heads))
        return True

    def _head(self, queue: str) -> int | None:
        """Give the first row whose class is not known to fail; the others leave the line."""
        line = self.lines[queue]
        while line and self._key(queue, line[-1]) in self.failed:
            line.pop()
        return line[-1] if line else None

    def _key(self, queue: str, row: int) -> ClassKey:
        return queue, int(self.snapshot.waiting.request_class[row])

    def _request(self, row: int) -> RequestClass:
        waiting = self.snapshot.waiting
        return waiting.classes[int(waiting.request_class[row])]

    def _candidate(self, queue: str, row: int) -> Candidate:
        request = self._request(row)
        choice = next(self.scene.choices(self.scene.queue(queue), request), None)
        return Candidate(
            queue=queue,
            row=row,
            submitted_us=int(self.snapshot.waiting.submitted_us[row]),
            charges=charges_of(request, choice) if choice else {},
        )

    def _judge(self, candidate: Candidate) -> None:
        queue = self.scene.queue(candidate.queue)
        self.lines[queue.name].pop()
        fit = self.scene.try_gang(queue, self._request(candidate.row))
        if fit is None:
            self.failed[self._key(queue.name, candidate.row)] = len(self.admits)
            return
        for pair, amount in fit.charges.items():
            self.scene.tree.charge(queue.name, pair, amount)
        self.admits.append(self._admit(candidate, fit))

    def _admit(self, candidate: Candidate, fit: Fit) -> Admit:
        waiting, fleet = self.snapshot.waiting, self.snapshot.fleet
        placements = [
            PodPlacement(
                pod_set=pod_set.name,
                index=index,
                node_id=int(fleet.node_id[place.row]),
                gpu_mask=place.gpu_mask,
                nic_mask=place.nic_mask,
            )
            for pod_set in self._request(candidate.row).pod_sets
            for index, place in enumerate(fit.places[pod_set.name])
        ]
        charges = [
            Charge(flavor=pair[0], resource=pair[1], amount=amount)
            for pair, amount in sorted(fit.charges.items())
        ]
        return Admit(
            job_id=int(waiting.job_id[candidate.row]),
            version=int(waiting.version[candidate.row]),
            queue=candidate.queue,
            placements=tuple(placements),
            charges=tuple(charges),
        )

    def plan(self) -> CyclePlan:
        """Close the pass: one hold with a reason for everybody who was not admitted."""
        admitted = {admit.job_id for admit in self.admits}
        finder = ReasonFinder(self.snapshot, self.policies, tuple(self.admits))
        class_holds: dict[ClassKey, ClassHold] = {}
        holds = []
        for row in np.argsort(self.snapshot.waiting.job_id).tolist():
            if int(self.snapshot.waiting.job_id[row]) in admitted:
                continue
            queue = self.snapshot.queues[int(self.snapshot.waiting.queue[row])]
            key = self._key(queue.name, row)
            if key not in class_holds:
                class_holds[key] = self._class_hold(finder, key)
            holds.append(self._hold(row, key, class_holds[key].reason))
        return CyclePlan(
            serial=self.snapshot.serial,
            admits=tuple(self.admits),
            holds=tuple(holds),
            class_holds=tuple(class_holds[key] for key in sorted(class_holds)),
        )

    def _class_hold(self, finder: ReasonFinder, key: ClassKey) -> ClassHold:
        if self.scene.queue(key[0]).state is not QueueState.OPEN:
            return finder.paused(*key)
        if key not in self.failed:
            return finder.not_reached(*key)
        return finder.diagnose(*key, admits_before=self.failed[key])

    def _hold(self, row: int, key: ClassKey, reason: Reason) -> Hold:
        waiting = self.snapshot.waiting
        return Hold(
            job_id=int(waiting.job_id[row]),
            version=int(waiting.version[row]),
            reason=reason,
            queue=key[0],
            class_index=key[1],
        )
