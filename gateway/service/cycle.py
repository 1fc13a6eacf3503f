"""One admission cycle: read what changed, decide, and write the plan.

A request class that makes the decision itself fail is found and set aside with its jobs, so that
one poisoned row does not keep everybody waiting.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

import structlog

from gateway.core.admission import CyclePlan, plan_cycle, plan_pass
from gateway.core.mirror import Mirror
from gateway.db import attempts as attempt_rows
from gateway.db import jobs as job_rows
from gateway.db.engine import Writer
from gateway.db.state import next_serial
from gateway.service.committing import Commit, View
from gateway.service.context import Gateway
from gateway.service.crash_points import reach
from gateway.service.mirroring import refresh
from gateway.service.quarantine import quarantine
from gateway.service.user_usage import terms_of

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
    next_wake_at_us: int | None = None
    """Instant at which the next cycle is due even if nothing but time changes."""


def run_cycle(gateway: Gateway) -> CycleOutcome | None:
    """Decide once; None when this process does not lead."""
    epoch = gateway.leadership.epoch
    if epoch is None:
        return None
    # No write is waited for under the mirror's lock: a writer may be waiting for the lock.
    serial, backlog = gateway.database.run_write(_begin)
    room = max(0, gateway.settings.max_unlaunched - backlog)
    poisoned: list[tuple[int, Exception]] = []
    with gateway.mirror.lock:
        refresh(gateway)
        mirror = gateway.mirror.mirror
        _take_over(gateway, epoch)
        lines, classes = mirror.state.lines, mirror.state.classes
        view = View(
            classes=classes,
            flavors={each.name: each for each in mirror.definitions.flavors},
            generation=mirror.definitions.generation,
            epoch=epoch,
            usage=terms_of(mirror, gateway.settings.usage_half_life_seconds),
            node_holds=mirror.state.node_holds,
        )
        waiting, strangers = len(lines), lines.strangers(classes)
        plan = _decide(gateway, mirror, serial, room, poisoned)
    for job_id in strangers:
        _set_aside(gateway, job_id, LookupError("its queue or request cannot be read"))
    for job_id, error in poisoned:
        _set_aside(gateway, job_id, error)
    if plan is None:
        return CycleOutcome(serial=serial, admitted=0, waiting=waiting, is_dirty=True)
    return _commit(gateway, view, plan, waiting)


def _begin(writer: Writer) -> tuple[int, int]:
    """Give the cycle's number, and how many gangs are reserved and not yet launched."""
    return next_serial(writer), attempt_rows.count_unlaunched(writer.connection)


def _take_over(gateway: Gateway, epoch: int) -> None:
    """Tell everything anew under a new epoch: another leader may have told it otherwise."""
    known = gateway.mirror
    if known.told_epoch != epoch:
        known.barred, known.told_epoch = None, epoch
        known.mirror.state.untell(known.mirror.state.told)


def _decide(
    gateway: Gateway, mirror: Mirror, serial: int, room: int, poisoned: list[tuple[int, Exception]]
) -> CyclePlan | None:
    """Give the plan; None when a poisoned class was found and another try is due."""
    pace, settings = gateway.mirror.pace, gateway.settings
    budget = pace.budget(DECISION_SECONDS, settings.cycle_budget)
    now_us, started = gateway.clock.now_us(), time.monotonic()
    try:
        plan = plan_pass(mirror.state, serial, now_us, budget, room)
    except Exception as error:
        # It may have told some reasons before it broke off, and none of them is stored.
        mirror.state.untell(mirror.state.told)
        poisoned += _poisoned(mirror, now_us)
        if not poisoned:
            raise
        log.warning("decision_repeated", error=type(error).__name__)
        return None
    pace.note(len(plan.admits) + len(plan.class_holds), time.monotonic() - started)
    return plan


def _poisoned(mirror: Mirror, now_us: int) -> Iterator[tuple[int, Exception]]:
    """Give the jobs of every class that cannot be decided on by itself."""
    snapshot = mirror.snapshot(0)
    waiting = snapshot.waiting
    for index in range(len(waiting.classes)):
        alone = waiting.take(waiting.request_class == index)
        try:
            plan_cycle(replace(snapshot, waiting=alone), mirror.state.policies, now_us, 1)
        except Exception as error:  # noqa: BLE001 - whatever it is, it stays with its own jobs
            yield from ((job_id, error) for job_id in alone.job_id.tolist())


def _set_aside(gateway: Gateway, job_id: int, error: Exception) -> None:
    with gateway.database.read() as connection:
        job = job_rows.get_job_head(connection, job_id)
    if job is not None:
        quarantine(gateway, job, error)


def _commit(gateway: Gateway, view: View, plan: CyclePlan, waiting: int) -> CycleOutcome:
    """Write the plan and say what became of it."""
    commit = Commit(gateway=gateway, view=view, plan=plan)
    if plan.admits:
        reach("before_reserve")
    try:
        commit.run()
    finally:
        if not commit.is_told:
            with gateway.mirror.lock:
                told = [(hold.queue, hold.class_index) for hold in plan.class_holds]
                gateway.mirror.mirror.state.untell(told)
    if commit.admitted:
        reach("after_reserve")
    return CycleOutcome(
        serial=plan.serial,
        admitted=commit.admitted,
        waiting=waiting - commit.admitted,
        is_dirty=commit.dropped > 0 or commit.is_outdated or not plan.is_complete,
        next_wake_at_us=plan.next_wake_at_us,
    )
