"""Reads the fleet for people: nodes with what is free, devices with who holds them.

Reading only; `gateway.db.fleet` writes. What another tenant may see is decided by the service.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, case, func, select, tuple_

from gateway.core.vocabulary import DeviceHealth
from gateway.db.engine import Row
from gateway.db.tables import (
    assignments,
    attempts,
    device_grants,
    devices,
    jobs,
    node_amounts,
    nodes,
)

Place = tuple[str, str, int]
"""(node, kind, ordinal): where a device stands in the order of the list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceQuery:
    """Which devices to list; empty fields do not filter. By place, after `after`."""

    node: str = ""
    kind: str = ""
    is_free: bool | None = None
    after: Place | None = None
    limit: int = 100


def list_nodes(connection: Connection, after: str, limit: int) -> Sequence[Row]:
    """Give nodes by name, behind `after`."""
    statement = select(nodes).where(nodes.c.name > after).order_by(nodes.c.name).limit(limit)
    return connection.execute(statement).mappings().all()


def get_node(connection: Connection, name: str) -> Row | None:
    """Give one node."""
    return connection.execute(select(nodes).where(nodes.c.name == name)).mappings().first()


def amounts_of(
    connection: Connection, node_ids: Sequence[int]
) -> dict[int, dict[str, tuple[int, int]]]:
    """Give (total, free) of each resource of these nodes."""
    statement = select(node_amounts).where(node_amounts.c.node_id.in_(node_ids))
    found: dict[int, dict[str, tuple[int, int]]] = {}
    for row in connection.execute(statement):
        found.setdefault(row.node_id, {})[row.resource] = (row.total, row.free)
    return found


def device_counts(
    connection: Connection, node_ids: Sequence[int]
) -> dict[tuple[int, str], tuple[int, int]]:
    """Give (present, free) by (node, kind)."""
    key = (devices.c.node_id, devices.c.kind)
    statement = (
        select(*key, func.count(), func.sum(case((is_free(), 1), else_=0)))
        .where(devices.c.node_id.in_(node_ids), devices.c.is_present)
        .group_by(*key)
    )
    return {(row[0], row[1]): (row[2], int(row[3])) for row in connection.execute(statement)}


def is_free() -> ColumnElement[bool]:
    """Give the condition that a device could be granted now, its node's state aside."""
    return (
        (devices.c.units_free == devices.c.units_total)
        & devices.c.is_present
        & ~devices.c.is_foreign
        & (devices.c.health == DeviceHealth.HEALTHY)
    )


def list_devices(connection: Connection, query: DeviceQuery) -> Sequence[Row]:
    """Give devices with node, freedom and holder by node, kind and ordinal."""
    place = (nodes.c.name, devices.c.kind, devices.c.ordinal)
    statement = _with_holder().order_by(*place).limit(query.limit)
    if query.node:
        statement = statement.where(nodes.c.name == query.node)
    if query.kind:
        statement = statement.where(devices.c.kind == query.kind)
    if query.is_free is not None:
        statement = statement.where(is_free() if query.is_free else ~is_free())
    if query.after is not None:
        statement = statement.where(tuple_(*place) > query.after)
    return connection.execute(statement).mappings().all()


def devices_on(
    connection: Connection, node_ids: Collection[int]
) -> dict[tuple[int, str, int], Row]:
    """Give the devices of these nodes by (node, kind, ordinal)."""
    found = connection.execute(select(devices).where(devices.c.node_id.in_(node_ids))).mappings()
    return {(row["node_id"], row["kind"], row["ordinal"]): row for row in found}


def names_of(connection: Connection, node_ids: Collection[int]) -> dict[int, str]:
    """Give nodes' names by id."""
    statement = select(nodes.c.id, nodes.c.name).where(nodes.c.id.in_(node_ids))
    return {row.id: row.name for row in connection.execute(statement)}


def get_device(connection: Connection, device_id: int) -> Row | None:
    """Give one device with node, freedom and holder."""
    return connection.execute(_with_holder().where(devices.c.id == device_id)).mappings().first()


def _with_holder() -> Select[Any]:
    """Join each device to the pod that holds it whole, if one does."""
    # Part of the join and not of the filter, or devices that nobody holds would vanish.
    live = device_grants.c.is_live & device_grants.c.is_whole
    joined = (
        devices.join(nodes, nodes.c.id == devices.c.node_id)
        .outerjoin(device_grants, (device_grants.c.device_id == devices.c.id) & live)
        .outerjoin(assignments, assignments.c.id == device_grants.c.assignment_id)
        .outerjoin(attempts, attempts.c.id == assignments.c.attempt_id)
        .outerjoin(jobs, jobs.c.id == attempts.c.job_id)
    )
    return select(
        devices,
        nodes.c.name.label("node"),
        is_free().label("is_free"),
        jobs.c.uid.label("job_uid"),
        jobs.c.name.label("job_name"),
        jobs.c.namespace.label("job_namespace"),
        assignments.c.pod_set,
        assignments.c.pod_index,
    ).select_from(joined)
