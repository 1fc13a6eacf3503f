"""The last judge: takes the devices and amounts of whole gangs in one transaction, or nothing.

A double grant is impossible rather than unlikely: units are reduced under a check that they stay
at or above zero, whole grants have a partial unique index besides, and a job has at most one live
attempt. What the planner got wrong surfaces here as GrantConflict. Many gangs share a handful of
statements; a caller whose batch is refused tries each gang alone, so that only the one at fault is
dropped.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from itertools import starmap
from typing import Any, Final

from sqlalchemy import BigInteger, String, Update, func, select, update
from sqlalchemy.exc import IntegrityError

from gateway.core.vocabulary import AttemptPhase, DeviceHealth, DeviceKind, JobState
from gateway.db.engine import Writer
from gateway.db.grants import WHOLE_DEVICE_UNITS, Grant, GrantConflict, GrantPod
from gateway.db.many import Given, Types, insert_rows, update_rows
from gateway.db.tables import (
    assignments,
    attempts,
    charges,
    device_grants,
    devices,
    jobs,
    node_amounts,
    nodes,
)
from gateway.errors import StaleVersion

Row = dict[str, Any]
DeviceKey = tuple[int, DeviceKind, int]
"""(node id, kind, ordinal)."""
_ID: Final = {"its_id": BigInteger()}
_JOB_KEY: Final = dict.fromkeys(("job", "known", "number", "at"), BigInteger())
_AMOUNT: Final[Types] = {"node": BigInteger(), "name": String(), "amount": BigInteger()}


def reserve(writer: Writer, grants: Sequence[Grant], users: Mapping[int, str]) -> None:
    """Reserve gangs of different jobs; `users` tells whose each job is. Call it in a savepoint.

    Raises:
        StaleVersion: a job changed since the plan was made.
        GrantConflict: something of one of them is taken.
    """
    # The jobs first: their versions are what most often changed, and the cheapest to find out.
    _advance_jobs(writer, grants)
    try:
        _take_all(writer, grants, users)
    except IntegrityError as error:
        raise GrantConflict("one of these gangs collides with another reservation") from error


def _take_all(writer: Writer, grants: Sequence[Grant], users: Mapping[int, str]) -> None:
    ids = _insert_attempts(writer, grants)
    pods = [(ids[grant.job_id], pod) for grant in grants for pod in grant.pods]
    _take_nodes(writer, [pod for _, pod in pods])
    _take_amounts(writer, [pod for _, pod in pods])
    _assign(writer, pods)
    _insert_charges(writer, ids, grants, users)


def _advance_jobs(writer: Writer, grants: Sequence[Grant]) -> None:
    rows = list(map(_job_key, grants))
    if update_rows(writer, _JOB_KEY, rows, partial(_advancing, writer)) != len(grants):
        raise StaleVersion("one of these jobs changed since the plan was made")


def _advancing(writer: Writer, given: Given) -> Update:
    return (
        update(jobs)
        .where(
            jobs.c.id == given("job"),
            jobs.c.version == given("known"),
            # Wrapped, or PostgreSQL may go through all that wait by the index on states.
            func.coalesce(jobs.c.state, "") == JobState.PENDING,
        )
        .values(
            state=JobState.RESERVED,
            version=jobs.c.version + 1,
            attempt=given("number"),
            reason=None,
            message="",
            reserved_us=given("at"),
            xact_id=writer.xact_id,
        )
    )


def _job_key(grant: Grant) -> Row:
    return {
        "job": grant.job_id,
        "known": grant.version,
        "number": grant.attempt,
        "at": grant.at_us,
    }


def _insert_attempts(writer: Writer, grants: Sequence[Grant]) -> dict[int, int]:
    """Give the row ids by job."""
    # Looked up afterwards: a statement that returns ids for hundreds of rows takes longer to
    # put together than all of this.
    insert_rows(writer, attempts, list(map(_attempt_row, grants)))
    statement = select(attempts.c.job_id, attempts.c.id).where(
        attempts.c.job_id.in_([grant.job_id for grant in grants]),
        attempts.c.phase == AttemptPhase.INTENDED,
    )
    return {row.job_id: row.id for row in writer.connection.execute(statement)}


def _attempt_row(grant: Grant) -> Row:
    return {
        "job_id": grant.job_id,
        "number": grant.attempt,
        "phase": AttemptPhase.INTENDED,
        "epoch": grant.epoch,
        "backend": grant.backend,
        "guarantee": grant.guarantee,
        "object_name": grant.object_name,
        "reserved_us": grant.at_us,
        "usage_part": grant.usage_part,
        "usage_entry": grant.usage_entry,
    }


def _take_nodes(writer: Writer, pods: Sequence[GrantPod]) -> None:
    """Lock the nodes, which may have been cordoned since the plan, and mark them changed."""
    node_ids = sorted({pod.node_id for pod in pods})
    wanted = list(map(_id_row, node_ids))
    if update_rows(writer, _ID, wanted, partial(_locking, writer)) != len(wanted):
        raise GrantConflict("one of these nodes takes no new pods")


def _id_row(row_id: int) -> Row:
    return {"its_id": row_id}


def _locking(writer: Writer, given: Given) -> Update:
    return (
        update(nodes)
        .where(nodes.c.id == given("its_id"))
        .where(nodes.c.is_present, ~nodes.c.is_cordoned, nodes.c.health == DeviceHealth.HEALTHY)
        .values(xact_id=writer.xact_id)
    )


def _take_amounts(writer: Writer, pods: Sequence[GrantPod]) -> None:
    wanted: Counter[tuple[int, str]] = Counter()
    for pod in pods:
        wanted.update({(pod.node_id, name): amount for name, amount in pod.amounts.items()})
    # Nothing asked of a resource that the node does not have is fine: `+` drops zeros.
    rows = list(starmap(_amount_row, sorted((+wanted).items())))
    if update_rows(writer, _AMOUNT, rows, _taking_amounts) != len(rows):
        raise GrantConflict(f"not all of this is left: {', '.join(map(_amount_words, rows))}")


def _amount_row(key: tuple[int, str], amount: int) -> Row:
    return {"node": key[0], "name": key[1], "amount": amount}


def _amount_words(row: Row) -> str:
    return f"{row['amount']} {row['name']} of node {row['node']}"


def _taking_amounts(given: Given) -> Update:
    return (
        update(node_amounts)
        .where(
            node_amounts.c.node_id == given("node"),
            node_amounts.c.resource == given("name"),
            # Compared and taken by one statement; a check on the column stands behind it.
            node_amounts.c.free >= given("amount"),
        )
        .values(free=node_amounts.c.free - given("amount"))
    )


def _assign(writer: Writer, pods: Sequence[tuple[int, GrantPod]]) -> None:
    insert_rows(writer, assignments, list(starmap(_assignment_row, pods)))
    if any(pod.devices for _, pod in pods):
        _grant_devices(writer, _owners(writer, pods))


def _assignment_row(attempt_id: int, pod: GrantPod) -> dict[str, Any]:
    return {
        "attempt_id": attempt_id,
        "pod_set": pod.pod_set,
        "pod_index": pod.index,
        "rank": pod.rank,
        "node_id": pod.node_id,
        "amounts": dict(pod.amounts),
        "tolerations": list(map(asdict, pod.tolerations)),
    }


def _owners(writer: Writer, pods: Sequence[tuple[int, GrantPod]]) -> dict[DeviceKey, int]:
    """Give the assignment that takes each device."""
    ids = _assignment_ids(writer, sorted({attempt_id for attempt_id, _ in pods}))
    taken = [
        ((pod.node_id, *device), ids[attempt_id, pod.rank])
        for attempt_id, pod in pods
        for device in pod.devices
    ]
    owners = dict(taken)
    # A device that two gangs of one plan name would be taken once and granted twice.
    if len(owners) != len(taken):
        raise GrantConflict("two of these gangs name the same device")
    return owners


def _assignment_ids(writer: Writer, attempt_ids: Sequence[int]) -> dict[tuple[int, int], int]:
    """Give row ids by (attempt, rank)."""
    columns = (assignments.c.attempt_id, assignments.c.rank, assignments.c.id)
    statement = select(*columns).where(assignments.c.attempt_id.in_(attempt_ids))
    rows = writer.connection.execute(statement)
    return {(row.attempt_id, row.rank): row.id for row in rows}


def _grant_devices(writer: Writer, owners: Mapping[DeviceKey, int]) -> None:
    known = _device_ids(writer, sorted({key[0] for key in owners}))
    if not owners.keys() <= known.keys():
        raise GrantConflict("one of these devices is not known")
    device_ids = [known[key] for key in owners]
    wanted = list(map(_id_row, device_ids))
    if update_rows(writer, _ID, wanted, partial(_taking_devices, writer)) != len(wanted):
        raise GrantConflict("one of these devices is not free")
    rows = map(_device_grant_row, owners.values(), device_ids)
    insert_rows(writer, device_grants, list(rows))


def _device_ids(writer: Writer, node_ids: Sequence[int]) -> dict[DeviceKey, int]:
    columns = (devices.c.node_id, devices.c.kind, devices.c.ordinal, devices.c.id)
    statement = select(*columns).where(devices.c.node_id.in_(node_ids))
    rows = writer.connection.execute(statement)
    return {(row.node_id, DeviceKind(row.kind), row.ordinal): row.id for row in rows}


def _device_grant_row(assignment_id: int, device_id: int) -> Row:
    return {
        "assignment_id": assignment_id,
        "device_id": device_id,
        "units": WHOLE_DEVICE_UNITS,
        "is_whole": True,
    }


def _taking_devices(writer: Writer, given: Given) -> Update:
    return (
        update(devices)
        .where(
            devices.c.id == given("its_id"),
            # A whole device: one that is shared out in part has units left and is none.
            devices.c.units_free == devices.c.units_total,
            devices.c.is_present,
            ~devices.c.is_foreign,
            devices.c.health == DeviceHealth.HEALTHY,
        )
        .values(
            units_free=devices.c.units_free - WHOLE_DEVICE_UNITS,
            version=devices.c.version + 1,
            xact_id=writer.xact_id,
        )
    )


def _insert_charges(
    writer: Writer, ids: Mapping[int, int], grants: Sequence[Grant], users: Mapping[int, str]
) -> None:
    rows = [
        _charge_row(grant, charge)
        | {
            "attempt_id": ids[grant.job_id],
            "user_name": users[grant.job_id],
            "xact_id": writer.xact_id,
        }
        for grant in grants
        for charge in grant.charges
    ]
    insert_rows(writer, charges, rows)


def _charge_row(grant: Grant, charge: tuple[str, str, str, int]) -> Row:
    queue, flavor, resource, amount = charge
    return {
        "queue": queue,
        "flavor": flavor,
        "resource": resource,
        "amount": amount,
        "reserved_us": grant.at_us,
    }
