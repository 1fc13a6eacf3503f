"""Writes what inventory saw: new, changed and vanished nodes and devices.

A device that is held stays held whatever inventory says of it; a vanished one is marked absent and
taken by nobody. Free amounts are recomputed from what is live, so a shrunken node is not overdrawn.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, and_, insert, select, update

from gateway.core.devices.seen import DeviceSeen, NodeSeen
from gateway.db.engine import Row, Writer
from gateway.db.events import NewEvent, append_events
from gateway.db.free_amounts import recompute_free
from gateway.db.tables import devices, node_amounts, nodes

INVENTORY_ACTOR = "inventory"
NODE_FACTS = ("uid", "machine_type", "health", "is_present", "labels", "taints")
DEVICE_FACTS = (
    *("name", "uuid", "pci_address", "switch", "numa", "rail", "nvlink_group"),
    *("health", "is_present", "is_foreign"),
)


def sync_inventory(writer: Writer, seen: Sequence[NodeSeen], at_us: int) -> int:
    """Bring nodes and devices to what a complete inventory saw; gives how many rows changed."""
    # Whole, not node by node: five thousand reads take longer than one.
    known = _known_nodes(writer.connection)
    happened: list[NewEvent] = []
    changed: list[int] = []
    for node in seen:
        node_id, has_changed, words = _sync_node(writer, node, known.pop(node.name, None), at_us)
        if has_changed:
            changed.append(node_id)
        if words:
            happened.append(_event(at_us, words, node.name))
    # What is left was not seen. The inventory is complete, so it is not there any more.
    for row in known.values():
        if row["is_present"]:
            _mark_absent(writer, row["id"])
            happened.append(_event(at_us, "node_vanished", row["name"]))
            changed.append(row["id"])
    # Last, when all totals and foreign uses are in: a shrunken node must not go below nothing.
    recompute_free(writer, changed)
    append_events(writer, happened)
    return len(changed)


def _event(at_us: int, kind: str, node: str) -> NewEvent:
    return NewEvent(at_us=at_us, kind=kind, actor=INVENTORY_ACTOR, detail=node)


def _known_nodes(connection: Connection) -> dict[str, Row]:
    return {row["name"]: row for row in connection.execute(select(nodes)).mappings()}


def _sync_node(
    writer: Writer, node: NodeSeen, known: Row | None, at_us: int
) -> tuple[int, bool, str]:
    """Give the node's id, whether anything of it changed, and the event to tell."""
    facts = _node_facts(node)
    if known is None:
        node_id = _insert_node(writer, node, facts, at_us)
        words = "node_appeared"
        has_changed = True
    else:
        node_id = int(known["id"])
        has_changed = _differs(known, facts, NODE_FACTS)
        words = _words(known, facts)
        if has_changed:
            writer.connection.execute(
                update(nodes)
                .where(nodes.c.id == node_id)
                .values(**facts, seen_us=at_us, version=nodes.c.version + 1, xact_id=writer.xact_id)
            )
    has_changed |= _sync_amounts(writer, node_id, node)
    has_changed |= _sync_devices(writer, node_id, node.devices)
    return node_id, has_changed, words


def _words(known: Row, facts: Mapping[str, Any]) -> str:
    if not known["is_present"]:
        return "node_returned"
    # Same name, another machine: what ran on the old one is gone with it.
    if known["uid"] != facts["uid"]:
        return "node_replaced"
    if known["health"] != facts["health"]:
        return f"node_{facts['health']}"
    return ""


def _node_facts(node: NodeSeen) -> dict[str, Any]:
    return {
        "uid": node.uid,
        "machine_type": node.machine_type,
        "health": node.health.value,
        "is_present": True,
        "labels": dict(node.labels),
        "taints": [list(taint) for taint in node.taints],
    }


def _differs(row: Row, facts: Mapping[str, Any], names: Iterable[str]) -> bool:
    return any(row[name] != facts[name] for name in names)


def _insert_node(writer: Writer, node: NodeSeen, facts: Mapping[str, Any], at_us: int) -> int:
    statement = (
        insert(nodes)
        .values(name=node.name, **facts, seen_us=at_us, xact_id=writer.xact_id)
        .returning(nodes.c.id)
    )
    return int(writer.connection.execute(statement).scalar_one())


def _sync_amounts(writer: Writer, node_id: int, node: NodeSeen) -> bool:
    rows = writer.connection.execute(
        select(node_amounts).where(node_amounts.c.node_id == node_id)
    ).mappings()
    known = {row["resource"]: (row["total"], row["foreign_use"]) for row in rows}
    has_changed = False
    for resource in sorted({*known, *node.total}):
        now = (node.total.get(resource, 0), node.foreign.get(resource, 0))
        # Most rounds see what the last one saw, and write nothing.
        if known.get(resource) == now:
            continue
        has_changed = True
        values = {"total": now[0], "foreign_use": now[1]}
        if resource in known:
            key = and_(node_amounts.c.node_id == node_id, node_amounts.c.resource == resource)
            writer.connection.execute(update(node_amounts).where(key).values(**values))
        else:
            writer.connection.execute(
                # Nothing free until the sum is made: a wrong figure must never be too high.
                insert(node_amounts).values(node_id=node_id, resource=resource, free=0, **values)
            )
    return has_changed


def _sync_devices(writer: Writer, node_id: int, seen: Sequence[DeviceSeen]) -> bool:
    rows = writer.connection.execute(select(devices).where(devices.c.node_id == node_id)).mappings()
    known = {(row["kind"], row["ordinal"]): row for row in rows}
    has_changed = False
    for device in seen:
        row = known.pop((device.kind.value, device.ordinal), None)
        facts = _device_facts(device)
        if row is None:
            has_changed = True
            writer.connection.execute(
                insert(devices).values(
                    node_id=node_id,
                    kind=device.kind.value,
                    ordinal=device.ordinal,
                    **facts,
                    xact_id=writer.xact_id,
                )
            )
        elif _differs(row, facts, DEVICE_FACTS):
            has_changed = True
            _update_device(writer, row["id"], facts)
    for row in known.values():
        # Marked and not deleted: grants point at it, and ordinals keep their meaning.
        if row["is_present"]:
            has_changed = True
            _update_device(writer, row["id"], {"is_present": False})
    return has_changed


def _device_facts(device: DeviceSeen) -> dict[str, Any]:
    return {
        "name": device.name,
        "uuid": device.uuid,
        "pci_address": device.pci_address,
        "switch": device.switch,
        "numa": device.numa,
        "rail": device.rail,
        "nvlink_group": device.nvlink_group,
        "health": device.health.value,
        "is_present": True,
        "is_foreign": device.is_foreign,
    }


def _update_device(writer: Writer, device_id: int, values: Mapping[str, Any]) -> None:
    writer.connection.execute(
        update(devices)
        .where(devices.c.id == device_id)
        .values(**values, version=devices.c.version + 1, xact_id=writer.xact_id)
    )


def _mark_absent(writer: Writer, node_id: int) -> None:
    writer.connection.execute(
        update(nodes)
        .where(nodes.c.id == node_id)
        .values(is_present=False, version=nodes.c.version + 1, xact_id=writer.xact_id)
    )


def set_cordon(writer: Writer, node: Row, reason: str) -> bool:
    """Take a node out of use for this reason, or into use again; False when it was so already."""
    wanted = {"is_cordoned": bool(reason), "cordon_reason": reason}
    if all(node[name] == value for name, value in wanted.items()):
        return False
    writer.connection.execute(
        update(nodes)
        .where(nodes.c.id == node["id"])
        .values(**wanted, version=nodes.c.version + 1, xact_id=writer.xact_id)
    )
    return True
