"""Attempts in the database: one launch each, its steps stored one by one, its assignments."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, RowMapping, func, or_, select, update

from gateway.core.vocabulary import AttemptPhase, JobState
from gateway.db.engine import Writer
from gateway.db.jobs import HEAD
from gateway.db.tables import (
    assignments,
    attempts,
    device_grants,
    devices,
    jobs,
    log_tails,
    nodes,
)
from gateway.errors import StaleVersion

MAX_TAIL_BYTES = 64 * 1024
LAUNCHING_PHASES = (
    AttemptPhase.INTENDED,
    AttemptPhase.CREATED,
    AttemptPhase.HELD_IN_CLUSTER,
    AttemptPhase.UNSUSPENDED,
)
"""From the reservation until the gates are open."""


def live_attempts(connection: Connection) -> list[tuple[RowMapping, RowMapping]]:
    """Give every attempt that is not closed with its job (without the spec), oldest first.

    Attempts of jobs in quarantine are left out.
    """
    return _with_jobs(connection, attempts.c.phase != AttemptPhase.CLOSED)


def launching_attempts(connection: Connection) -> list[tuple[RowMapping, RowMapping]]:
    """Give those of them that are on their way; hardly any, where thousands run."""
    return _with_jobs(connection, attempts.c.phase.in_(LAUNCHING_PHASES))


def _with_jobs(
    connection: Connection, is_live: ColumnElement[bool]
) -> list[tuple[RowMapping, RowMapping]]:
    statement = select(attempts).where(is_live).order_by(attempts.c.reserved_us, attempts.c.id)
    live = connection.execute(statement).mappings().all()
    if not live:
        return []
    # Two statements instead of one wide join: a job's columns once, without its spec.
    owners = select(*HEAD).join(attempts, attempts.c.job_id == jobs.c.id).where(is_live)
    by_id = {row["id"]: row for row in connection.execute(owners).mappings()}
    return [
        (by_id[attempt["job_id"]], attempt)
        for attempt in live
        if not by_id[attempt["job_id"]]["is_quarantined"]
    ]


def get_attempt(connection: Connection, attempt_id: int) -> RowMapping | None:
    """Give an attempt by its row id."""
    statement = select(attempts).where(attempts.c.id == attempt_id)
    return connection.execute(statement).mappings().first()


def attempts_of(connection: Connection, job_id: int) -> Sequence[RowMapping]:
    """Give a job's attempts by number."""
    statement = select(attempts).where(attempts.c.job_id == job_id).order_by(attempts.c.number)
    return connection.execute(statement).mappings().all()


def undeleted_objects(
    connection: Connection, kept_until_us: int, late_until_us: int, limit: int
) -> Sequence[RowMapping]:
    """Give closed attempts whose object is to be removed from the cluster now.

    Those closed before `kept_until_us`; and, closed before `late_until_us`, those of which a create
    was sent that never came back with a UID, as it may have taken effect late.
    """
    is_late = (attempts.c.object_uid == "") & (attempts.c.closed_us <= late_until_us)
    statement = (
        select(attempts)
        .where(
            # Says that it is closed, as the phase would, and in the words of the index.
            attempts.c.closed_us <= max(kept_until_us, late_until_us),
            ~attempts.c.is_object_deleted,
            or_(attempts.c.closed_us <= kept_until_us, is_late),
        )
        .order_by(attempts.c.closed_us, attempts.c.id)
        .limit(limit)
    )
    return connection.execute(statement).mappings().all()


def count_unlaunched(connection: Connection) -> int:
    """Give how many gangs are reserved and not yet launched, but will be."""
    statement = select(func.count()).where(
        jobs.c.state == JobState.RESERVED,
        # Nobody launches those that are set aside, so they must not hold up the others for ever.
        ~jobs.c.is_quarantined,
    )
    return int(connection.execute(statement).scalar_one())


def change_attempt(writer: Writer, attempt: RowMapping, values: Mapping[str, Any]) -> None:
    """Change an attempt if it is still in the phase that was read.

    Raises:
        StaleVersion: another step was made meanwhile.
    """
    changed = writer.connection.execute(
        update(attempts)
        # The phase is the version of an attempt: steps only go forward, each from the one before.
        .where(attempts.c.id == attempt["id"], attempts.c.phase == attempt["phase"])
        .values(**values)
    )
    if changed.rowcount == 0:
        raise StaleVersion(f"attempt {attempt['id']} moved on meanwhile")


def mark_object_deleted(writer: Writer, attempt_id: int) -> None:
    """Remember that nothing of this attempt is left in the cluster."""
    writer.connection.execute(
        update(attempts).where(attempts.c.id == attempt_id).values(is_object_deleted=True)
    )


def pods_of(connection: Connection, attempt_id: int) -> Sequence[RowMapping]:
    """Give an attempt's assignments by rank, with the node's name."""
    return pods_of_all(connection, [attempt_id]).get(attempt_id, [])


def devices_of(connection: Connection, attempt_id: int) -> dict[int, list[RowMapping]]:
    """Give an attempt's devices by assignment id, GPUs before NICs, by ordinal."""
    return devices_of_all(connection, [attempt_id])


def pods_of_all(connection: Connection, attempt_ids: Sequence[int]) -> dict[int, list[RowMapping]]:
    """Give the assignments of several attempts, each attempt's by rank, with the node's name."""
    statement = (
        select(assignments, nodes.c.name.label("node"))
        .join(nodes, nodes.c.id == assignments.c.node_id)
        .where(assignments.c.attempt_id.in_(attempt_ids))
        .order_by(assignments.c.attempt_id, assignments.c.rank)
    )
    found: dict[int, list[RowMapping]] = {}
    for row in connection.execute(statement).mappings():
        found.setdefault(row["attempt_id"], []).append(row)
    return found


def devices_of_all(
    connection: Connection, attempt_ids: Sequence[int]
) -> dict[int, list[RowMapping]]:
    """Give the devices of several attempts by assignment id, GPUs before NICs, by ordinal."""
    statement = (
        select(devices, device_grants.c.assignment_id)
        .join(device_grants, device_grants.c.device_id == devices.c.id)
        .join(assignments, assignments.c.id == device_grants.c.assignment_id)
        .where(assignments.c.attempt_id.in_(attempt_ids))
        .order_by(devices.c.kind, devices.c.ordinal)
    )
    found: dict[int, list[RowMapping]] = {}
    for row in connection.execute(statement).mappings():
        found.setdefault(row["assignment_id"], []).append(row)
    return found


def get_attempts(connection: Connection, attempt_ids: Sequence[int]) -> dict[int, RowMapping]:
    """Give attempts by their row ids."""
    statement = select(attempts).where(attempts.c.id.in_(attempt_ids))
    return {row["id"]: row for row in connection.execute(statement).mappings()}


def store_log_tails(writer: Writer, tails: Sequence[tuple[int, int, str]]) -> None:
    """Keep the last lines of ranks, given as (attempt, rank, lines), each cut to 64 KiB."""
    if not tails:
        return
    table = writer.inserting(log_tails)
    statement = table.on_conflict_do_update(
        index_elements=["attempt_id", "rank"], set_={"lines": table.excluded.lines}
    )
    writer.connection.execute(
        statement,
        [
            # The end says why it failed; the beginning is in the cluster's own logs.
            {"attempt_id": attempt_id, "rank": rank, "lines": lines[-MAX_TAIL_BYTES:]}
            for attempt_id, rank, lines in tails
        ],
    )


def has_log_tails(connection: Connection, attempt_id: int) -> bool:
    """Whether any last lines of this attempt are kept."""
    statement = select(log_tails.c.rank).where(log_tails.c.attempt_id == attempt_id).limit(1)
    return connection.execute(statement).first() is not None


def read_log_tail(connection: Connection, attempt_id: int, rank: int) -> str | None:
    """Give the stored last lines of one rank."""
    statement = select(log_tails.c.lines).where(
        log_tails.c.attempt_id == attempt_id, log_tails.c.rank == rank
    )
    return connection.execute(statement).scalar_one_or_none()
