"""Counts for the metrics: each one statement over live rows or an index. Reads only."""

from sqlalchemy import Connection, case, func, select

from gateway.core.vocabulary import AttemptPhase, DeviceHealth, JobState
from gateway.db.reasons import reason_now
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


def waiting_by_reason(connection: Connection) -> dict[tuple[str, str], int]:
    """Give the number of waiting jobs by (queue, reason); no reason yet counts as NotReached."""
    reason = func.coalesce(reason_now(), "NotReached")
    statement = (
        select(jobs.c.queue, reason, func.count())
        .where(jobs.c.state.in_(WAITING))
        .group_by(jobs.c.queue, reason)
    )
    return {(row[0], row[1]): row[2] for row in connection.execute(statement)}


def oldest_pending(connection: Connection) -> dict[str, int]:
    """Give when each queue's longest waiting job was submitted, in microseconds."""
    statement = (
        select(jobs.c.queue, func.min(jobs.c.submitted_us))
        .where(jobs.c.state == JobState.PENDING)
        .group_by(jobs.c.queue)
    )
    return {row[0]: row[1] for row in connection.execute(statement)}


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
