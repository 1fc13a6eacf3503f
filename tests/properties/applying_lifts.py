"""Does to a snapshot what an explanation says would help, as an admin or a user would do it."""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple, TypeVar

import numpy as np

from gateway.core.admission import Snapshot
from gateway.core.admission.lifts import loosened, spread, whole
from gateway.core.admission.unblock import Lift, Lifts
from gateway.core.devices.fleet import Fleet
from gateway.core.jobs.request import RequestClass
from gateway.core.queues.dated import quotas_at
from gateway.core.queues.definitions import Cohort, Queue, Quota
from gateway.core.queues.tree import QuotaTree
from gateway.core.vocabulary import Blocking, LiftKind, PairRule, QueueState

Owner = TypeVar("Owner", Queue, Cohort)


class Case(NamedTuple):
    """A job that waits, on a state, at an instant."""

    snapshot: Snapshot
    job_id: int
    now_us: int


def applied(case: Case, lifts: Lifts) -> Case:
    """Give the case with a whole set applied."""
    for lift in lifts:
        case = _APPLY[lift.kind](case, lift)
    return case


def _row(case: Case) -> int:
    return int(np.flatnonzero(case.snapshot.waiting.job_id == case.job_id)[0])


def _raise_quota(case: Case, lift: Lift) -> Case:
    """Raise the nominal quota of a root."""
    snapshot = case.snapshot
    tree = QuotaTree(snapshot.queues, snapshot.cohorts)
    is_queue = lift.target in tree.queues
    node = (tree.queues if is_queue else tree.cohorts)[lift.target]
    assert node.parent is None, "only a root's own quota is asked for"
    return _with_owner(case, lift, lambda row: replace(row, nominal=row.nominal + lift.amount))


def _raise_limit(case: Case, lift: Lift) -> Case:
    return _with_owner(
        case, lift, lambda row: replace(row, borrowing_limit=row.borrowing_limit + lift.amount)
    )


def _with_owner(case: Case, lift: Lift, change: Callable[[Quota], Quota]) -> Case:
    snapshot = case.snapshot
    return case._replace(
        snapshot=replace(
            snapshot,
            queues=tuple(_changed(each, lift, change, case.now_us) for each in snapshot.queues),
            cohorts=tuple(_changed(each, lift, change, case.now_us) for each in snapshot.cohorts),
        )
    )


def _changed(owner: Owner, lift: Lift, change: Callable[[Quota], Quota], now_us: int) -> Owner:
    if owner.name != lift.target:
        return owner
    pair = (lift.flavor, lift.resource)
    rows = {(row.flavor, row.resource): row for row in quotas_at(owner, now_us)}
    row = rows.get(pair, Quota(flavor=lift.flavor, resource=lift.resource, nominal=0))
    rows[pair] = change(row)
    later = tuple(each for each in owner.changes if each.at_us > now_us)
    return replace(owner, quotas=tuple(rows.values()), changes=later)


def _free(case: Case, lift: Lift) -> Case:
    """Let devices or an amount come free on a node."""
    fleet = case.snapshot.fleet
    row = fleet.names.index(lift.target)
    mask = sum(1 << ordinal for ordinal in lift.ordinals)
    if lift.ordinals:
        assert lift.amount == len(lift.ordinals)
        name = {"gpu": "gpu", "rdma": "nic"}[lift.resource]
        column = getattr(fleet, f"{name}_free").copy()
        assert not column[row] & mask, "what is free already need not come free"
        assert not mask & ~int(getattr(fleet, f"{name}_all")[row])
        column[row] |= mask
        return _with_fleet(case, replace(fleet, **{f"{name}_free": column}))
    free = fleet.free.copy()
    free[row, fleet.resources.index(lift.resource)] += lift.amount
    assert (free[row] <= fleet.total[row]).all()
    return _with_fleet(case, replace(fleet, free=free))


def _heal(case: Case, lift: Lift) -> Case:
    fleet = case.snapshot.fleet
    available = fleet.is_available.copy()
    available[fleet.names.index(lift.target)] = True
    return _with_fleet(case, replace(fleet, is_available=available))


def _with_fleet(case: Case, fleet: Fleet) -> Case:
    return case._replace(snapshot=replace(case.snapshot, fleet=fleet))


def _loosen(case: Case, lift: Lift) -> Case:
    waiting, row = case.snapshot.waiting, _row(case)
    looser = loosened(waiting.classes[waiting.request_class[row]], PairRule(lift.word))
    classes = waiting.request_class.copy()
    classes[row] = len(waiting.classes)
    waiting = replace(waiting, request_class=classes, classes=(*waiting.classes, looser))
    return case._replace(snapshot=replace(case.snapshot, waiting=waiting))


def _spread(case: Case, lift: Lift) -> Case:
    waiting, row = case.snapshot.waiting, _row(case)
    request = waiting.classes[waiting.request_class[row]]
    assert any(each.level == lift.target and each.is_level_required for each in request.pod_sets)
    return _asking(case, spread(request))


def _uncut(case: Case, lift: Lift) -> Case:
    request = case.snapshot.waiting.classes[case.snapshot.waiting.request_class[_row(case)]]
    # One lift for each label, and the first of them has undone them all.
    assert all((lift.target, lift.amount) in e.slices for e in request.pod_sets if e.slices)
    return _asking(case, whole(request))


def _asking(case: Case, request: RequestClass) -> Case:
    waiting = case.snapshot.waiting
    classes = waiting.request_class.copy()
    classes[_row(case)] = len(waiting.classes)
    waiting = replace(waiting, request_class=classes, classes=(*waiting.classes, request))
    return case._replace(snapshot=replace(case.snapshot, waiting=waiting))


def _come_first(case: Case, lift: Lift) -> Case:
    """Hold everybody else back."""
    waiting = case.snapshot.waiting
    assert lift.amount == len(waiting) - 1
    alone = waiting.take(waiting.job_id == case.job_id)
    return case._replace(snapshot=replace(case.snapshot, waiting=alone))


def _reprioritise(case: Case, lift: Lift) -> Case:
    priority = case.snapshot.waiting.priority.copy()
    priority[_row(case)] = lift.amount
    waiting = replace(case.snapshot.waiting, priority=priority)
    return case._replace(snapshot=replace(case.snapshot, waiting=waiting))


def _wait(case: Case, lift: Lift) -> Case:
    assert lift.amount > case.now_us
    return case._replace(now_us=lift.amount)


def _edit(change: Callable[[Queue, Lift], Queue]) -> Callable[[Case, Lift], Case]:
    """Give what edits the queue that a lift names."""

    def act(case: Case, lift: Lift) -> Case:
        queues = tuple(
            change(queue, lift) if queue.name == lift.target else queue
            for queue in case.snapshot.queues
        )
        return case._replace(snapshot=replace(case.snapshot, queues=queues))

    return act


def _budget(queue: Queue, lift: Lift) -> Queue:
    assert queue.budget is not None
    return replace(queue, budget=replace(queue.budget, gpu_seconds=lift.amount))


_APPLY: dict[LiftKind, Callable[[Case, Lift], Case]] = {
    LiftKind.QUOTA: _raise_quota,
    LiftKind.BORROWING_LIMIT: _raise_limit,
    LiftKind.ROOM: _free,
    LiftKind.HEALTH: _heal,
    LiftKind.PAIR: _loosen,
    LiftKind.TOPOLOGY: _spread,
    LiftKind.SLICES: _uncut,
    LiftKind.ORDER: _come_first,
    LiftKind.PRIORITY: _reprioritise,
    LiftKind.TIME: _wait,
    LiftKind.RESUME: _edit(lambda queue, _: replace(queue, state=QueueState.OPEN)),
    LiftKind.BLOCKING: _edit(lambda queue, _: replace(queue, blocking=Blocking.BEST_EFFORT)),
    LiftKind.CAP: _edit(
        lambda queue, lift: replace(queue, caps=replace(queue.caps, **{lift.word: lift.amount}))
    ),
    LiftKind.BUDGET: _edit(_budget),
}
