"""What would let one waiting job start in the next cycle: complete sets, each tried before told.

What bars the job comes first, then what the gang lacks. Whether others would still come before it
is found out by a pass over the changed state; where that is not possible, the set says that they
have to be held back.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from gateway.core.admission.bars import Unbarred, Waiter, unbarred
from gateway.core.admission.lift_words import unblocking
from gateway.core.admission.ranking import Ranking
from gateway.core.admission.starving import holders_words
from gateway.core.admission.state import State
from gateway.core.admission.trial import Scene
from gateway.core.admission.unblock import NOTHING, Lift, Unblock, coming_first
from gateway.core.admission.what_if import asked, defined, lifted, scene_at, starts
from gateway.core.jobs.request import RequestClass
from gateway.core.resources import GPU
from gateway.core.vocabulary import UNLIMITED, Blocking, LiftKind
from gateway.core.waiting.table import NewJob

MOST_GROUPS = 200
"""With more kinds of waiting jobs a pass over a changed state takes too long for an answer."""
OTHER_CLASS = frozenset({LiftKind.PAIR, LiftKind.TOPOLOGY, LiftKind.SLICES})
"""A job that asks for less is a job of another class, and stands in no line yet."""
COPY = UNLIMITED - 2
"""Id of a job that stands for another one with a different number."""


def remedies(state: State, job_id: int, now_us: int) -> tuple[Unblock, ...]:
    """Give sets of which each lets a job start in the next cycle.

    Empty when it does not wait, when it starts anyway, or when nothing that was tried would do.

    Args:
        state: as it is now, what was admitted before running already; it stays as it is.
        job_id: of the job.
        now_us: the present instant.
    """
    state.lines.advance(now_us)
    table = state.lines.table
    slot = table.find(job_id)
    if slot is None:
        return ()
    queue = table.words["queue"][int(table.queue[slot])]
    request = state.classes.get(int(table.class_id[slot]))
    if request is None or queue not in state.scene.queues:
        return ()
    waiter = Waiter(
        queue=queue,
        user=table.words["user"][int(table.user[slot])],
        gpus=dict(request.total).get(GPU, 0),
        eligible_us=table.eligible_us.get(slot, 0),
    )
    return tuple(dict.fromkeys(_Case(state, job_id, request, waiter, now_us).sets()))


@dataclass(frozen=True, slots=True)
class _Case:
    """One job that waits."""

    state: State
    job_id: int
    request: RequestClass
    waiter: Waiter
    now_us: int

    def sets(self) -> Iterator[Unblock]:
        """Give every set."""
        scene = scene_at(self.state, max(self.now_us, self.waiter.eligible_us))
        queue = scene.queues[self.waiter.queue]
        for way in unbarred(self.state, self.waiter, queue, self.now_us):
            scene = scene_at(self.state, way.at_us)
            # Only what bars was lifted in it; its quotas are those of that instant.
            way_queue = replace(way.queue, quotas=scene.queues[queue.name].quotas)
            scene = defined(scene, {**scene.queues, queue.name: way_queue}, scene.cohorts)
            yield from self._on(way, scene)

    def _on(self, way: Unbarred, scene: Scene) -> Iterator[Unblock]:
        queue = scene.queues[self.waiter.queue]
        if scene.look(queue, self.request):
            yield from self._in_order(way, scene, NOTHING)
            return
        for needed in unblocking(scene, queue, self.request):
            yield from self._in_order(way, lifted(scene, needed.lifts), needed)

    def _in_order(self, way: Unbarred, scene: Scene, needed: Unblock) -> Iterator[Unblock]:
        """Add what keeps others from coming first, if they would."""
        known = way.unblock.also(needed)
        others = len(self.state.lines) - 1
        # Alone, it needs no pass to find out who would come first.
        if not others or self._starts(way, scene, needed):
            if known.lifts:
                yield known
            return
        found = False
        if self._is_tried(way, needed):
            ways = (*self._unblocked(way, scene), *self._ahead(scene), *self._unheld(scene))
            for changed in ways:
                found = True
                yield known.also(changed)
        if not found:
            yield known.also(coming_first(others))

    def _is_tried(self, way: Unbarred, needed: Unblock) -> bool:
        """Whether a pass can say what would happen."""
        groups = sum(len(line.groups) for line in self.state.lines.lines.values())
        is_other_class = any(lift.kind in OTHER_CLASS for lift in needed.lifts)
        return way.at_us == self.now_us and not is_other_class and groups <= MOST_GROUPS

    def _starts(self, way: Unbarred, scene: Scene, needed: Unblock) -> bool:
        return self._is_tried(way, needed) and starts(self.state, scene, self.job_id, self.now_us)

    def _unblocked(self, way: Unbarred, scene: Scene) -> Iterator[Unblock]:
        """Try what would happen if the queue let others pass its first job."""
        queue = scene.queues[self.waiter.queue]
        if queue.blocking is not Blocking.STRICT:
            return
        free = replace(queue, blocking=Blocking.BEST_EFFORT)
        changed = defined(scene, {**scene.queues, queue.name: free}, scene.cohorts)
        if self._starts(way, changed, NOTHING):
            lift = Lift(kind=LiftKind.BLOCKING, target=queue.name)
            yield Unblock(f"queue {queue.name} to be best_effort instead of strict", (lift,))

    def _unheld(self, scene: Scene) -> Iterator[Unblock]:
        """Try what would happen if nobody held nodes any more."""
        state = self.state
        if state.node_holds and starts(state, scene, self.job_id, self.now_us, ignores_holds=True):
            # A tenant's job is nothing that others can change, so there is no number to give.
            yield Unblock(f"{holders_words(state)} to leave", ())

    def _ahead(self, scene: Scene) -> Iterator[Unblock]:
        """Try what would happen if the job came first in its queue."""
        table = self.state.lines.table
        number = Ranking(self.state, self.waiter.queue, self.now_us).priority_to_lead(self.job_id)
        slot = table.find(self.job_id)
        if number is None or slot is None or number == table.priority[slot]:
            return
        # Beside the original: a job's place is found by its id, and the state has to stay as it is.
        copy = NewJob(
            job_id=COPY,
            version=1,
            queue=self.waiter.queue,
            class_id=int(table.class_id[slot]),
            user=self.waiter.user,
            priority=number,
            rank=int(table.rank[slot]),
            submitted_us=int(table.submitted_us[slot]),
            eligible_us=self.waiter.eligible_us,
            deadline_us=table.deadline_us.get(slot, 0),
            expected_seconds=table.expected_seconds.get(slot, 0),
        )
        with asked(self.state, copy, self.request, self.now_us) as second:
            is_enough = starts(second, scene, COPY, self.now_us)
        if is_enough:
            lift = Lift(kind=LiftKind.PRIORITY, amount=number)
            yield Unblock(f"a priority of {number} in queue {self.waiter.queue}", (lift,))
