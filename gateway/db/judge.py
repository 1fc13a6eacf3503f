"""The last judge: takes a whole gang's devices and amounts in one transaction, or nothing.

A double grant is impossible rather than unlikely: units are reduced under a check that they stay
at or above zero, whole grants have a partial unique index besides, and a job has at most one live
attempt. What the planner got wrong surfaces here as GrantConflict, and only that gang is dropped.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import and_, bindparam, insert, or_, select, update
from sqlalchemy.exc import IntegrityError

from gateway.core.resources.node_rules import Toleration
from gateway.core.vocabulary import AttemptPhase, DeviceHealth, DeviceKind, JobState
from gateway.db.engine import Writer
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
from gateway.errors import Conflict, StaleVersion

WHOLE_DEVICE_UNITS = 100


class GrantConflict(Conflict):
    """A device, node amount or live attempt is taken already; plan again."""

    code = "grant_conflict"


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantPod:
    """One pod's part of a grant; `amounts` are cpu, memory, pods and extended resources."""

    pod_set: str
    index: int
    rank: int
    node_id: int
    amounts: Mapping[str, int]
    devices: tuple[tuple[DeviceKind, int], ...]
    """(kind, ordinal) on that node."""
    tolerations: tuple[Toleration, ...] = ()
    """Those of the flavor under which it was placed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """A gang to be reserved."""

    job_id: int
    version: int
    attempt: int
    epoch: int
    backend: str
    guarantee: str
    object_name: str
    at_us: int
    pods: tuple[GrantPod, ...]
    charges: tuple[tuple[str, str, str, int], ...]
    """(queue, flavor, resource, amount)."""
    usage_part: int = 0
    """Part of the fleet that it takes, in 1/2^40; 0 where its user's usage is not counted."""
    usage_entry: int = 0
    """Usage that it counts at once, in 1/2^40."""


def reserve(writer: Writer, grant: Grant) -> int:
    """Reserve a gang; gives the attempt's row id. Call it inside a savepoint.

    Raises:
        StaleVersion: the job changed since the plan was made.
        GrantConflict: something of it is taken.
    """
    # The job first: its version is what most often changed, and the cheapest to find out.
    user = _advance_job(writer, grant)
    try:
        attempt_id = _insert_attempt(writer, grant)
        for pod in grant.pods:
            _reserve_pod(writer, attempt_id, pod)
        _insert_charges(writer, attempt_id, grant, user)
    # A constraint said no although every read said yes: this is the last judge at work.
    except IntegrityError as error:
        raise GrantConflict(f"job {grant.job_id} collides with another reservation") from error
    return attempt_id


def _advance_job(writer: Writer, grant: Grant) -> str:
    """Make the job reserved; gives whose it is."""
    advanced = writer.connection.execute(
        update(jobs)
        .where(
            jobs.c.id == grant.job_id,
            jobs.c.version == grant.version,
            jobs.c.state == JobState.PENDING,
        )
        .values(
            state=JobState.RESERVED,
            version=jobs.c.version + 1,
            attempt=grant.attempt,
            reason=None,
            message="",
            reserved_us=grant.at_us,
            xact_id=writer.xact_id,
        )
        # Charges name the user, since caps and usage are counted without a look at the jobs.
        .returning(jobs.c.user_name)
    ).scalar_one_or_none()
    if advanced is None:
        raise StaleVersion(f"job {grant.job_id} changed since the plan was made")
    return str(advanced)


def _insert_attempt(writer: Writer, grant: Grant) -> int:
    statement = insert(attempts).values(
        job_id=grant.job_id,
        number=grant.attempt,
        phase=AttemptPhase.INTENDED,
        epoch=grant.epoch,
        backend=grant.backend,
        guarantee=grant.guarantee,
        object_name=grant.object_name,
        reserved_us=grant.at_us,
        usage_part=grant.usage_part,
        usage_entry=grant.usage_entry,
    )
    return int(writer.connection.execute(statement.returning(attempts.c.id)).scalar_one())


def _reserve_pod(writer: Writer, attempt_id: int, pod: GrantPod) -> None:
    # Nodes in the order of the plan's pods; two writers that cross are told apart by a deadlock,
    # which is repeated, and never by a double grant.
    _lock_usable_node(writer, pod.node_id)
    for resource, amount in sorted(pod.amounts.items()):
        taken = writer.connection.execute(
            update(node_amounts)
            .where(
                node_amounts.c.node_id == pod.node_id,
                node_amounts.c.resource == resource,
                # Compared and taken by one statement; a check on the column stands behind it.
                node_amounts.c.free >= amount,
            )
            .values(free=node_amounts.c.free - amount)
        )
        # Nothing asked of a resource that the node does not have is fine.
        if taken.rowcount == 0 and amount:
            raise GrantConflict(f"node {pod.node_id} has no {amount} {resource} left")
    assignment_id = int(
        writer.connection.execute(
            insert(assignments).values(assignment_row(attempt_id, pod)).returning(assignments.c.id)
        ).scalar_one()
    )
    _grant_devices(writer, assignment_id, pod)


def assignment_row(attempt_id: int, pod: GrantPod) -> dict[str, Any]:
    """Give the columns of one pod's assignment."""
    return {
        "attempt_id": attempt_id,
        "pod_set": pod.pod_set,
        "pod_index": pod.index,
        "rank": pod.rank,
        "node_id": pod.node_id,
        "amounts": dict(pod.amounts),
        "tolerations": list(map(asdict, pod.tolerations)),
    }


def _lock_usable_node(writer: Writer, node_id: int) -> None:
    """Lock the node's row and mark it changed; it may have been cordoned since the plan."""
    locked = writer.connection.execute(
        update(nodes)
        .where(
            nodes.c.id == node_id,
            nodes.c.is_present,
            ~nodes.c.is_cordoned,
            nodes.c.health == DeviceHealth.HEALTHY,
        )
        # Marks the node for the mirror, and on PostgreSQL holds its row until the commit.
        .values(xact_id=writer.xact_id)
    )
    if locked.rowcount == 0:
        raise GrantConflict(f"node {node_id} takes no new pods")


def _grant_devices(writer: Writer, assignment_id: int, pod: GrantPod) -> None:
    if not pod.devices:
        return
    device_ids = _take_devices(writer, pod)
    writer.connection.execute(
        insert(device_grants),
        [
            {
                "assignment_id": assignment_id,
                "device_id": device_id,
                "units": WHOLE_DEVICE_UNITS,
                "is_whole": True,
            }
            for device_id in device_ids
        ],
    )


def _take_devices(writer: Writer, pod: GrantPod) -> list[int]:
    """Take all units of devices that are present, healthy and nobody else's; gives their ids."""
    named = [
        and_(
            devices.c.kind == kind, devices.c.ordinal.in_([n for k, n in pod.devices if k == kind])
        )
        for kind in dict(pod.devices)
    ]
    # One statement a pod: a large plan has tens of thousands of devices, and holds locks meanwhile.
    taken = writer.connection.execute(
        update(devices)
        .where(
            devices.c.node_id == pod.node_id,
            or_(*named),
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
        .returning(devices.c.id, devices.c.kind, devices.c.ordinal)
    ).all()
    missing = set(pod.devices) - {(DeviceKind(row.kind), row.ordinal) for row in taken}
    if missing:
        words = ", ".join(f"{kind} {ordinal}" for kind, ordinal in sorted(missing))
        raise GrantConflict(f"{words} of node {pod.node_id} is not free")
    return [row.id for row in taken]


def _insert_charges(writer: Writer, attempt_id: int, grant: Grant, user: str) -> None:
    rows = [
        {
            "attempt_id": attempt_id,
            "queue": queue,
            "flavor": flavor,
            "resource": resource,
            "amount": amount,
            "xact_id": writer.xact_id,
            "user_name": user,
            "reserved_us": grant.at_us,
        }
        for queue, flavor, resource, amount in grant.charges
    ]
    if rows:
        writer.connection.execute(insert(charges), rows)


def recompute_free(writer: Writer, node_ids: Sequence[int]) -> None:
    """Set each node's free amounts to total less foreign use less live assignments, at least 0.

    Recomputing instead of adding back keeps the figures right when a node shrank meanwhile. The
    nodes' rows are locked first, so that no reservation can slip in between reading and writing.
    """
    if not node_ids:
        return
    connection = writer.connection
    connection.execute(
        select(nodes.c.id)
        .where(nodes.c.id.in_(node_ids))
        # Always in this order, so that two that free at the same time cannot wait for each other.
        .order_by(nodes.c.id)
        .with_for_update(key_share=True)
    )
    held: dict[tuple[int, str], int] = {}
    live = select(assignments.c.node_id, assignments.c.amounts).where(
        assignments.c.node_id.in_(node_ids), assignments.c.is_live
    )
    for row in connection.execute(live):
        for resource, amount in row.amounts.items():
            key = (row.node_id, resource)
            held[key] = held.get(key, 0) + amount
    current = connection.execute(
        select(node_amounts).where(node_amounts.c.node_id.in_(node_ids))
    ).mappings()
    changes = [
        {
            "node": row["node_id"],
            "name": row["resource"],
            # A node that shrank may hold more than it has; free never goes below nothing.
            "left": max(
                0,
                row["total"] - row["foreign_use"] - held.get((row["node_id"], row["resource"]), 0),
            ),
        }
        for row in current
    ]
    if changes:
        connection.execute(
            update(node_amounts)
            .where(
                and_(
                    node_amounts.c.node_id == bindparam("node"),
                    node_amounts.c.resource == bindparam("name"),
                )
            )
            .values(free=bindparam("left")),
            changes,
        )
    connection.execute(update(nodes).where(nodes.c.id.in_(node_ids)).values(xact_id=writer.xact_id))
