"""The cycle: head after head, admitted while it fits, until nobody is left or the budget ends.

Best effort: a head that does not fit is set aside, and others of its queue and of other queues may
pass. A request class that failed once in a queue is not tried again for another job of that queue.
"""

from dataclasses import dataclass, field

import numpy as np

from gateway.core.admission.reasons import Admitted, ReasonFinder
from gateway.core.admission.trial import Fit, Scene, new_scene
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
from gateway.core.policies.fairness import FAIRNESS, Candidate, Contest
from gateway.core.policies.ordering import ORDERING
from gateway.core.vocabulary import QueueState, ReplicaType

ClassKey = tuple[str, int]
"""(queue name, class index)."""


def plan_cycle(snapshot: Snapshot, policies: Policies, now_us: int, budget: int) -> CyclePlan:
    """Decide for every waiting job: admit it onto exact devices, or hold it with a reason.

    Args:
        snapshot: the whole state; never changed.
        policies: names of the policies in force.
        now_us: present instant, microseconds since the epoch; nothing depends on it yet.
        budget: candidates to try; the rest is held as NotReached.

    Raises:
        InvalidInput: a policy of that name does not exist, or the quota tree is broken.
    """
    del now_us
    scene = new_scene(snapshot, policies)
    contest = named("fairness", FAIRNESS, policies.fairness)(scene.tree)
    cycle = _Cycle(scene=scene, contest=contest)
    cycle.line_up()
    while cycle.tried < budget and (head := contest.best()) is not None:
        cycle.step(head)
    return cycle.plan()


@dataclass(slots=True, kw_only=True)
class _Cycle:
    """Progress of one pass."""

    scene: Scene
    contest: Contest
    lines: dict[str, list[int]] = field(default_factory=dict)
    """Rows still to be looked at by queue, next one last."""
    admitted: list[Admitted] = field(default_factory=list)
    failed: dict[ClassKey, int] = field(default_factory=dict)
    """Class that did not fit, with the number of admissions before it failed."""
    tried: int = 0

    def line_up(self) -> None:
        """Order each open queue's jobs."""
        snapshot = self.scene.snapshot
        order = named("ordering", ORDERING, "priority")
        for index, queue in enumerate(snapshot.queues):
            if queue.state is QueueState.OPEN:
                rows = np.flatnonzero(snapshot.waiting.queue == index)
                self.lines[queue.name] = order(snapshot.waiting, rows)[::-1].tolist()
                self._next_head(queue.name)

    def step(self, chosen: Candidate) -> None:
        """Try the head that comes next, unless its flavor changed meanwhile."""
        renewed = self._candidate(chosen.queue, chosen.row)
        if renewed.charges != chosen.charges:
            # Quota only shrinks during a pass, so a head comes back at most once for each flavor.
            self.contest.put(renewed)
            return
        self.tried += 1
        self.lines[chosen.queue].pop()
        self._judge(chosen)
        self._next_head(chosen.queue)

    def _next_head(self, queue: str) -> None:
        """Put forward the first row whose class is not known to fail; the others leave the line."""
        line = self.lines[queue]
        while line and self._key(queue, line[-1]) in self.failed:
            line.pop()
        if line:
            self.contest.put(self._candidate(queue, line[-1]))
        else:
            self.contest.withdraw(queue)

    def _candidate(self, queue: str, row: int) -> Candidate:
        return Candidate(
            queue=queue,
            row=row,
            submitted_us=int(self.scene.snapshot.waiting.submitted_us[row]),
            charges=self.scene.nominate(self.scene.queues[queue], self._request(row)),
        )

    def _judge(self, candidate: Candidate) -> None:
        queue, request = self.scene.queues[candidate.queue], self._request(candidate.row)
        fit = self.scene.try_gang(queue, request)
        if fit is None:
            self.failed[self._key(queue.name, candidate.row)] = len(self.admitted)
            return
        self.scene.charge(queue.name, fit)
        self.contest.refresh(queue.name)
        self.admitted.append(Admitted(candidate.row, queue.name, request, fit))

    def plan(self) -> CyclePlan:
        """Close the pass: one hold with a reason for everybody who was not admitted."""
        snapshot = self.scene.snapshot
        finder = ReasonFinder(self.scene.afresh(), tuple(self.admitted))
        keys = {row: self._key_of(row) for row in self._held_rows()}
        # In the order in which jobs came, since only the first classes are told what would help.
        class_holds = {key: self._class_hold(finder, key) for key in dict.fromkeys(keys.values())}
        return CyclePlan(
            serial=snapshot.serial,
            admits=tuple(map(self._admit, self.admitted)),
            holds=tuple(self._hold(row, class_holds[key]) for row, key in keys.items()),
            class_holds=tuple(class_holds[key] for key in sorted(class_holds)),
        )

    def _held_rows(self) -> list[int]:
        """Give the rows that were not admitted, by job."""
        admitted = {entry.row for entry in self.admitted}
        by_job = np.argsort(self.scene.snapshot.waiting.job_id, kind="stable").tolist()
        return [row for row in by_job if row not in admitted]

    def _class_hold(self, finder: ReasonFinder, key: ClassKey) -> ClassHold:
        if self.scene.queues[key[0]].state is not QueueState.OPEN:
            return finder.paused(*key)
        if key not in self.failed:
            return finder.not_reached(*key)
        return finder.diagnose(*key, admits_before=self.failed[key])

    def _hold(self, row: int, class_hold: ClassHold) -> Hold:
        waiting = self.scene.snapshot.waiting
        return Hold(
            job_id=int(waiting.job_id[row]),
            version=int(waiting.version[row]),
            reason=class_hold.reason,
            queue=class_hold.queue,
            class_index=class_hold.class_index,
        )

    def _admit(self, entry: Admitted) -> Admit:
        waiting = self.scene.snapshot.waiting
        return Admit(
            job_id=int(waiting.job_id[entry.row]),
            version=int(waiting.version[entry.row]),
            queue=entry.queue,
            placements=self._placements(entry.request, entry.fit),
            charges=tuple(
                Charge(flavor=pair[0], resource=pair[1], amount=amount)
                for pair, amount in sorted(entry.fit.charges.items())
            ),
        )

    def _placements(self, request: RequestClass, fit: Fit) -> tuple[PodPlacement, ...]:
        master_first = sorted(request.pod_sets, key=lambda each: each.name != ReplicaType.MASTER)
        return tuple(
            PodPlacement(
                pod_set=pod_set.name,
                index=index,
                node_id=int(self.scene.snapshot.fleet.node_id[place.row]),
                gpu_mask=place.gpu_mask,
                nic_mask=place.nic_mask,
            )
            for pod_set in master_first
            for index, place in enumerate(fit.places[pod_set.name])
        )

    def _key_of(self, row: int) -> ClassKey:
        snapshot = self.scene.snapshot
        return self._key(snapshot.queues[int(snapshot.waiting.queue[row])].name, row)

    def _key(self, queue: str, row: int) -> ClassKey:
        return queue, int(self.scene.snapshot.waiting.request_class[row])

    def _request(self, row: int) -> RequestClass:
        waiting = self.scene.snapshot.waiting
        return waiting.classes[int(waiting.request_class[row])]
