"""The cycle as a function: a whole snapshot goes in, one decision for each waiting job comes out.

Everything is worked out afresh here. A running gateway keeps a warm state instead and makes the
same passes over it; both decide the same.
"""

from dataclasses import dataclass

import numpy as np

from gateway.core.admission.deciding import Decided, decide
from gateway.core.admission.granting import admits_of
from gateway.core.admission.snapshots import state_of
from gateway.core.admission.state import AskKey, State
from gateway.core.admission.types import ClassHold, CyclePlan, Hold, Policies, Snapshot
from gateway.core.admission.verdicts import ClassTeller, bar, queue_holds
from gateway.core.admission.waking import next_wake_at_us
from gateway.core.vocabulary import Reason


def plan_cycle(snapshot: Snapshot, policies: Policies, now_us: int, budget: int) -> CyclePlan:
    """Decide for every waiting job: admit it onto exact devices, or hold it with a reason.

    Args:
        snapshot: the whole state; never changed.
        policies: names of the policies in force.
        now_us: present instant, microseconds since the epoch.
        budget: candidates to try; the rest is held as NotReached.

    Raises:
        InvalidInput: a policy of that name does not exist, or the quota tree is broken.
    """
    state = state_of(snapshot, policies, now_us)
    decided = decide(state, now_us, budget)
    return _Plan(snapshot, state, decided, now_us).whole()


@dataclass(slots=True)
class _Plan:
    """One pass over a whole snapshot, told job by job."""

    snapshot: Snapshot
    state: State
    decided: Decided
    now_us: int

    def whole(self) -> CyclePlan:
        """Give every decision."""
        holds, class_holds = self._holds()
        return CyclePlan(
            serial=self.snapshot.serial,
            admits=admits_of(self.state, self.decided),
            holds=tuple(holds),
            class_holds=tuple(class_holds[key] for key in sorted(class_holds)),
            queue_holds=queue_holds(self.state, self.now_us),
            node_holds=self.decided.node_holds,
            next_wake_at_us=next_wake_at_us(self.state, self.now_us, self.decided.slots()),
        )

    def _holds(self) -> tuple[list[Hold], dict[AskKey, ClassHold]]:
        told = ClassTeller(self.state, self.decided, self.now_us)
        holds: list[Hold] = []
        class_holds: dict[AskKey, ClassHold] = {}
        for row in self._held_rows():
            key, barred = self._key(row), self._bar(row)
            # One diagnosis for a class, of which a hundred thousand jobs may wait.
            if key not in class_holds:
                class_holds[key] = told.hold(key)
            holds.append(self._hold(row, barred or class_holds[key].reason))
        return holds, class_holds

    def _held_rows(self) -> list[int]:
        """Give the rows that were not admitted, by job."""
        waiting = self.snapshot.waiting
        table = self.state.lines.table
        admitted = {int(table.job_id[entry.slot]) for entry in self.decided.admitted}
        # A snapshot may list jobs in any order; equal ones must give equal plans.
        by_job = np.argsort(waiting.job_id, kind="stable").tolist()
        return [row for row in by_job if int(waiting.job_id[row]) not in admitted]

    def _key(self, row: int) -> AskKey:
        waiting = self.snapshot.waiting
        return self.snapshot.queues[waiting.queue[row]].name, int(waiting.request_class[row])

    def _bar(self, row: int) -> Reason | None:
        waiting = self.snapshot.waiting
        # Before caps and budget: what they say by the time it may start nobody knows.
        if waiting.eligible_us[row] > self.now_us:
            return Reason.NOT_BEFORE
        user = waiting.users[waiting.user[row]]
        return bar(self.state, self.state.ask(self._key(row)), user, self.now_us)

    def _hold(self, row: int, reason: Reason) -> Hold:
        waiting = self.snapshot.waiting
        queue, class_index = self._key(row)
        return Hold(
            job_id=int(waiting.job_id[row]),
            version=int(waiting.version[row]),
            reason=reason,
            queue=queue,
            class_index=class_index,
        )
