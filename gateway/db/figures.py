"""Counts for the metrics: each one statement over live rows or an index. Reads only."""

from typing import NamedTuple

from sqlalchemy import Connection, case, func, select

from gateway.core.vocabulary import AttemptPhase, DeviceHealth, JobState, Reason
from gateway.db.reasons import with_reasons
from gateway.db.tables import (
    attempts,
    charges,
    devices,
    gateway_state,
    jobs,
    leader_lease,
    quotas,
)

WAITING = (JobState.PENDING.value, JobState.HELD.value)


class Waiting(NamedTuple):
    """Jobs of a queue that wait in one state for one reason."""

    queue: str
    state: str
    reason: str
    number: int
    oldest_us: int
    """When the first of them was submitted."""


def waiting(connection: Connection) -> list[Waiting]:
    """Give who waits where and why; no reason yet counts as NotReached."""
    # One statement for all of it, since it reads everybody who waits.
    everybody, reason_found = with_reasons()
    reason = func.coalesce(reason_found, Reason.NOT_REACHED.value)
    key = (jobs.c.queue, jobs.c.state, reason)
    statement = (
        select(*key, func.count(), func.min(jobs.c.submitted_us))
        .select_from(everybody)
        .where(jobs.c.state.in_(WAITING))
        .group_by(*key)
    )
    return [Waiting._make(row) for row in connection.execute(statement)]


def devices_by_state(connection: Connection) -> dict[tuple[str, str], int]:
    """Give the number of devices by (kind, state): absent, foreign, held, unhealthy or free."""
    state = case(
        (~devices.c.is_present, "absent"),
        (devices.c.units_free < devices.c.units_total, "held"),
        (devices.c.is_foreign, "foreign"),
        (devices.c.health != DeviceHealth.HEALTHY, "unavailable"),
        else_="free",
    )
    statement = select(devices.c.kind, state, func.count()).group_by(devices.c.kind, state)
    return {(row[0], row[1]): row[2] for row in connection.execute(statement)}


def live_usage(connection: Connection) -> dict[tuple[str, str, str], int]:
    """Give what is used by (queue, flavor, resource), in base units."""
    statement = (
        select(charges.c.queue, charges.c.flavor, charges.c.resource, func.sum(charges.c.amount))
        .where(charges.c.is_live)
        .group_by(charges.c.queue, charges.c.flavor, charges.c.resource)
    )
    return {(row[0], row[1], row[2]): int(row[3]) for row in connection.execute(statement)}


def nominal_quotas(connection: Connection) -> dict[tuple[str, str, str, str], int]:
    """Give nominal quota by (queue or cohort, its name, flavor, resource)."""
    key = (quotas.c.owner_kind, quotas.c.owner, quotas.c.flavor, quotas.c.resource)
    statement = select(*key, quotas.c.nominal)
    return {(row[0], row[1], row[2], row[3]): row[4] for row in connection.execute(statement)}


def attempts_by_phase(connection: Connection) -> dict[str, int]:
    """Give the number of live attempts by phase."""
    statement = (
        select(attempts.c.phase, func.count())
        .where(attempts.c.phase != AttemptPhase.CLOSED)
        .group_by(attempts.c.phase)
    )
    return {row[0]: row[1] for row in connection.execute(statement)}


def counters(connection: Connection) -> dict[str, int]:
    """Give numbers that only grow: cycles, leader epoch, rows ever given to jobs and attempts."""
    statement = select(
        select(gateway_state.c.cycle_serial).scalar_subquery(),
        select(leader_lease.c.epoch).scalar_subquery(),
        select(func.coalesce(func.max(jobs.c.id), 0)).scalar_subquery(),
        select(func.coalesce(func.max(attempts.c.id), 0)).scalar_subquery(),
    )
    cycles, epoch, submitted, reserved = connection.execute(statement).one()
    return {"cycles": cycles, "epoch": epoch, "jobs": submitted, "attempts": reserved}
