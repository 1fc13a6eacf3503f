"""One admission cycle: read what changed, decide, and write the plan.

A request class that makes the decision itself fail is found and set aside with its jobs, so that
one poisoned row does not keep everybody waiting.
"""

import time
from collections.abc import Iterable
from dataclasses import dataclass, replace

import structlog

from gateway.core.admission import CyclePlan, Policies, Snapshot, plan_cycle
from gateway.db import attempts as attempt_rows
from gateway.db import jobs as job_rows
from gateway.db.state import next_serial
from gateway.service.committing import Commit, View
from gateway.service.context import Gateway
from gateway.service.crash_points import reach
from gateway.service.mirroring import refresh, remember
from gateway.service.quarantine import quarantine

log = structlog.get_logger()
DECISION_SECONDS = 1.0
"""Time that one decision may take; the budget of candidates follows from it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleOutcome:
    """What one cycle did; `is_dirty` asks for another one at once."""

    serial: int
    admitted: int
    waiting: int
    is_dirty: bool


def run_cycle(gateway: Gateway) -> CycleOutcome | None:
    """Decide once; None when this process does not lead."""
    epoch = gateway.leadership.epoch
    if epoch is None:
        return None
    view, strangers = _read(gateway, epoch)
    if strangers:
        _set_aside(gateway, strangers, LookupError("its queue or request cannot be read"))
    plan = _decide(gateway, view)
    if plan is None:
        return CycleOutcome(serial=view.snapshot.serial, admitted=0, waiting=0, is_dirty=True)
    return _commit(gateway, view, plan)


def _commit(gateway: Gateway, view: View, plan: CyclePlan) -> CycleOutcome:
    """Write the plan and say what became of it."""
    commit = Commit(gateway=gateway, view=view, plan=plan)
    if plan.admits:
        reach("before_reserve")
    commit.run()
    if commit.admitted:
        reach("after_reserve")
    return CycleOutcome(
        serial=plan.serial,
        admitted=commit.admitted,
        waiting=len(plan.holds),
        is_dirty=commit.dropped > 0 or commit.is_outdated,
    )


def _read(gateway: Gateway, epoch: int) -> tuple[View, list[int]]:
    """Give what to decide on, and the waiting jobs that no decision can be made about."""
    state = gateway.mirror
    # No write is waited for under the lock: a writer may be waiting for the lock.
    serial = gateway.database.run_write(next_serial)
    with gateway.database.read() as connection:
        backlog = attempt_rows.count_unlaunched(connection)
    with state.lock:
        refresh(gateway)
        snapshot = state.mirror.snapshot(serial)
        remember(gateway, snapshot)
        view = View(
            snapshot=snapshot,
            class_ids=state.mirror.class_ids(),
            generation=state.mirror.definitions.generation,
            epoch=epoch,
            room=max(0, gateway.settings.max_unlaunched - backlog),
        )
        strangers: list[int] = []
        if len(snapshot.waiting) != len(state.mirror.jobs):
            strangers = sorted(set(state.mirror.jobs) - set(snapshot.waiting.job_id.tolist()))
    return view, strangers


def _decide(gateway: Gateway, view: View) -> CyclePlan | None:
    """Give the plan; None when a poisoned class was set aside and another try is due."""
    pace, settings = gateway.mirror.pace, gateway.settings
    budget = pace.budget(DECISION_SECONDS, settings.cycle_budget)
    now_us, started = gateway.clock.now_us(), time.monotonic()
    try:
        plan = plan_cycle(view.snapshot, Policies(), now_us, budget)
    except Exception as error:
        if not _isolate(gateway, view.snapshot, now_us):
            raise
        log.warning("decision_repeated", error=type(error).__name__)
        return None
    pace.note(len(plan.admits) + len(plan.class_holds), time.monotonic() - started)
    return plan


def _isolate(gateway: Gateway, snapshot: Snapshot, now_us: int) -> bool:
    """Set aside every class that cannot be decided on by itself; True when there was one."""
    found = False
    for index in range(len(snapshot.waiting.classes)):
        alone = replace(
            snapshot, waiting=snapshot.waiting.take(snapshot.waiting.request_class == index)
        )
        try:
            plan_cycle(alone, Policies(), now_us, 1)
        except Exception as error:  # noqa: BLE001 - whatever it is, it stays with its own jobs
            found = True
            _set_aside(gateway, alone.waiting.job_id.tolist(), error)
    return found


def _set_aside(gateway: Gateway, job_ids: Iterable[int], error: Exception) -> None:
    for job_id in job_ids:
        with gateway.database.read() as connection:
            job = job_rows.get_job_head(connection, job_id)
        if job is not None:
            quarantine(gateway, job, error)
