"""The state with something lifted: quotas raised, devices free, a queue defined otherwise.

A second state each time; the first one stays as it is. Who starts then is found out by a pass.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from gateway.core.admission.deciding import decide
from gateway.core.admission.state import State
from gateway.core.admission.trial import Scene
from gateway.core.admission.unblock import Lift
from gateway.core.jobs.request import RequestClass
from gateway.core.placing.room import Room
from gateway.core.queues.dated import definitions_at
from gateway.core.queues.definitions import Cohort, Queue, Quota
from gateway.core.resources import GPU
from gateway.core.vocabulary import LiftKind
from gateway.core.waiting.table import NewJob

BUDGET = 1000
"""Candidates that a pass over a changed state may try."""
_RAISES = frozenset({LiftKind.QUOTA, LiftKind.BORROWING_LIMIT})


def lifted(scene: Scene, lifts: Iterable[Lift]) -> Scene:
    """Give the scene with quotas, limits, devices and nodes as these lifts make them."""
    room = scene.room.twin()
    queues, cohorts = scene.queues, scene.cohorts
    for lift in lifts:
        if lift.kind in _RAISES:
            queues = {name: _raised_queue(queue, lift) for name, queue in queues.items()}
            cohorts = tuple(_raised_cohort(cohort, lift) for cohort in cohorts)
        elif lift.kind is LiftKind.ROOM:
            _give(room, lift)
        elif lift.kind is LiftKind.HEALTH:
            room.heal([scene.fleet.names.index(lift.target)])
    return defined(replace(scene, room=room), queues, cohorts)


def defined(scene: Scene, queues: dict[str, Queue], cohorts: tuple[Cohort, ...]) -> Scene:
    """Give the scene under other queues and cohorts."""
    tree = scene.tree.with_definitions(tuple(queues.values()), cohorts)
    return replace(scene, queues=queues, cohorts=cohorts, tree=tree)


def scene_at(state: State, at_us: int) -> Scene:
    """Give the scene with the quotas of an instant that is not before the state's own."""
    scene, known = state.scene, state.definitions
    queues, cohorts = definitions_at(known.queues, known.cohorts, at_us)
    # Mostly nothing is due by then, and a new tree would be planted for nothing.
    if (tuple(scene.queues.values()), scene.cohorts) == (queues, cohorts):
        return scene
    return defined(scene, {queue.name: queue for queue in queues}, cohorts)


def _give(room: Room, lift: Lift) -> None:
    row = room.fleet.names.index(lift.target)
    mask = sum(1 << ordinal for ordinal in lift.ordinals)
    if lift.ordinals:
        gpus, nics = (mask, 0) if lift.resource == GPU else (0, mask)
        room.give(row, gpus, nics, {})
    else:
        room.give(row, 0, 0, {lift.resource: lift.amount})


def _raised_queue(queue: Queue, lift: Lift) -> Queue:
    return replace(queue, quotas=_raised(queue, lift)) if queue.name == lift.target else queue


def _raised_cohort(cohort: Cohort, lift: Lift) -> Cohort:
    return replace(cohort, quotas=_raised(cohort, lift)) if cohort.name == lift.target else cohort


def _raised(owner: Queue | Cohort, lift: Lift) -> tuple[Quota, ...]:
    pair = (lift.flavor, lift.resource)
    rows = {(row.flavor, row.resource): row for row in owner.quotas}
    row = rows.get(pair, Quota(flavor=lift.flavor, resource=lift.resource, nominal=0))
    if lift.kind is LiftKind.QUOTA:
        rows[pair] = replace(row, nominal=row.nominal + lift.amount)
    else:
        rows[pair] = replace(row, borrowing_limit=row.borrowing_limit + lift.amount)
    return tuple(rows.values())


@contextmanager
def asked(state: State, job: NewJob, request: RequestClass, now_us: int) -> Iterator[State]:
    """Give a second state in which the job waits."""
    lines = state.lines
    lines.compact()
    lines.advance(now_us)
    # The second state takes these for its own; the first one must still find them.
    touched = set(lines.touched)
    fork = state.fork()
    try:
        if job.class_id not in fork.classes:
            fork.learn({job.class_id: request})
        lines.add([job])
        yield fork
    finally:
        lines.remove(job.job_id)
        groups = lines.lines[job.queue].groups
        for key in list(groups):
            if key.class_id == job.class_id and job.class_id not in state.classes:
                del groups[key]
        lines.touched.clear()
        lines.touched.update(touched)


@contextmanager
def on_scene(state: State, scene: Scene, now_us: int) -> Iterator[State]:
    """Give a second state over the same lines, on another scene, in which nothing is known yet."""
    lines = state.lines
    lines.compact()
    lines.advance(now_us)
    touched = set(lines.touched)
    fork = state.fork()
    # First the instant, or a dated change would build the scene anew.
    fork.at(now_us)
    fork.scene = scene
    # What does not fit on the real scene may fit on this one.
    fork.asks, fork.live = {}, {}
    lines.touch(fork.classes)
    try:
        yield fork
    finally:
        lines.touched.clear()
        lines.touched.update(touched)


def starts(
    state: State, scene: Scene, job_id: int, now_us: int, *, ignores_holds: bool = False
) -> bool:
    """Whether a job that waits would start in the next cycle if the scene were this one."""
    with on_scene(state, scene, now_us) as fork:
        if ignores_holds:
            fork.node_holds = ()
        slot = fork.lines.table.find(job_id)
        decided = decide(fork, now_us, BUDGET)
    return any(entry.slot == slot for entry in decided.admitted)
