"""The fleet for people: nodes, devices, who holds what; taking nodes out of use.

Who holds a device is told to those who may see the holder's namespace; others see that it is held.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter

from gateway.core.resources import CPU, MEMORY
from gateway.core.vocabulary import DeviceHealth, DeviceKind
from gateway.db import inventory_reading as fleet_rows
from gateway.db.engine import Connection, Row, Writer
from gateway.db.events import NewEvent, append_event
from gateway.db.fleet import set_cordon
from gateway.errors import InvalidInput, NotFound
from gateway.schemas.views import DevicePage, DeviceView, HolderView, NodePage, NodeView
from gateway.service.context import Caller, Gateway
from gateway.service.paging import match_cursor, next_cursor

MAX_REASON_LENGTH = 500
_PLACE = re.compile(r"^([-a-z0-9.]{1,253})/(gpu|rdma)/(\d{1,9})$")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceFilter:
    """Which devices to list; empty fields do not filter."""

    node: str = ""
    kind: DeviceKind | None = None
    free: bool | None = None


def list_nodes(gateway: Gateway, caller: Caller, cursor: str = "", limit: int = 100) -> NodePage:
    """Give a page of nodes by name; the cursor is the last one's name."""
    del caller
    with gateway.database.read() as connection:
        # One more than asked for tells whether there is a next page.
        rows = fleet_rows.list_nodes(connection, cursor, limit + 1)
        views = _node_views(connection, rows[:limit])
    return NodePage(items=views, next_cursor=next_cursor(rows, limit, itemgetter("name")))


def get_node(gateway: Gateway, caller: Caller, name: str) -> NodeView:
    """Give one node; raises NotFound."""
    del caller
    with gateway.database.read() as connection:
        return _node_views(connection, [_require_node(connection, name)])[0]


def cordon_node(gateway: Gateway, caller: Caller, name: str, reason: str) -> NodeView:
    """Place nothing new on a node; what runs there goes on. The reason is told to whoever waits.

    Raises:
        Denied: the caller is no admin.
        InvalidInput: the reason is missing or too long.
        NotFound: there is no such node.
    """
    caller.require_admin()
    if not 0 < len(reason.strip()) <= MAX_REASON_LENGTH:
        raise InvalidInput(
            f"a cordon needs a reason of 1 to {MAX_REASON_LENGTH} characters",
            pointer="/reason",
            value=reason[:MAX_REASON_LENGTH],
            hint="say why and until when, for those who wait",
        )
    return _cordon(gateway, caller, name, reason.strip())


def uncordon_node(gateway: Gateway, caller: Caller, name: str) -> NodeView:
    """Use a node again. Twice is fine."""
    caller.require_admin()
    return _cordon(gateway, caller, name, "")


def _cordon(gateway: Gateway, caller: Caller, name: str, reason: str) -> NodeView:
    at_us = gateway.clock.now_us()

    def work(writer: Writer) -> None:
        node = _require_node(writer.connection, name)
        # No event for what was so already, or a script in a loop would fill the history.
        if not set_cordon(writer, node, reason):
            return
        kind = "node_cordoned" if reason else "node_uncordoned"
        detail = f"{name}: {reason}" if reason else name
        append_event(writer, NewEvent(at_us=at_us, kind=kind, actor=caller.name, detail=detail))

    gateway.database.run_write(work)
    gateway.wake.hurry()
    return get_node(gateway, caller, name)


def _require_node(connection: Connection, name: str) -> Row:
    row = fleet_rows.get_node(connection, name)
    if row is None:
        raise NotFound(
            f"node {name[:253]!r} does not exist", value=name[:253], hint="see: gateway node ls"
        )
    return row


def _node_views(connection: Connection, rows: Sequence[Row]) -> tuple[NodeView, ...]:
    ids = [row["id"] for row in rows]
    # Two statements for the whole page instead of two for each node.
    amounts = fleet_rows.amounts_of(connection, ids)
    counts = fleet_rows.device_counts(connection, ids)
    return tuple(_node_view(row, amounts.get(row["id"], {}), counts) for row in rows)


def _node_view(
    row: Row, amounts: dict[str, tuple[int, int]], counts: dict[tuple[int, str], tuple[int, int]]
) -> NodeView:
    gpus = counts.get((row["id"], DeviceKind.GPU), (0, 0))
    nics = counts.get((row["id"], DeviceKind.RDMA), (0, 0))
    cpu, memory = amounts.get(CPU, (0, 0)), amounts.get(MEMORY, (0, 0))
    return NodeView(
        id=row["id"],
        name=row["name"],
        machine_type=row["machine_type"],
        health=DeviceHealth.CORDONED if row["is_cordoned"] else row["health"],
        is_present=row["is_present"],
        labels=row["labels"],
        gpus_total=gpus[0],
        gpus_free=gpus[1],
        rdma_total=nics[0],
        rdma_free=nics[1],
        cpu_millis_total=cpu[0],
        cpu_millis_free=cpu[1],
        memory_bytes_total=memory[0],
        memory_bytes_free=memory[1],
        version=row["version"],
    )


def list_devices(
    gateway: Gateway, caller: Caller, wanted: DeviceFilter, cursor: str = "", limit: int = 100
) -> DevicePage:
    """Give a page of devices by node, kind and ordinal; the cursor is the last one's place."""
    query = fleet_rows.DeviceQuery(
        node=wanted.node,
        kind=wanted.kind.value if wanted.kind else "",
        is_free=wanted.free,
        after=_read_place(cursor),
        limit=limit + 1,
    )
    with gateway.database.read() as connection:
        rows = fleet_rows.list_devices(connection, query)
    return DevicePage(
        items=tuple(_device_view(row, caller) for row in rows[:limit]),
        next_cursor=next_cursor(rows, limit, _place),
    )


def get_device(gateway: Gateway, caller: Caller, device_id: int) -> DeviceView:
    """Give one device; raises NotFound."""
    with gateway.database.read() as connection:
        row = fleet_rows.get_device(connection, device_id)
    if row is None:
        raise NotFound(f"device {device_id} does not exist", hint="see: gateway device ls")
    return _device_view(row, caller)


def _place(row: Row) -> str:
    return f"{row['node']}/{row['kind']}/{row['ordinal']}"


def _read_place(cursor: str) -> fleet_rows.Place | None:
    found = match_cursor(_PLACE, cursor)
    return (found[1], found[2], int(found[3])) if found else None


def _device_view(row: Row, caller: Caller) -> DeviceView:
    same = (
        *("id", "node", "kind", "ordinal", "name", "uuid", "pci_address", "switch", "numa"),
        *("rail", "health", "is_present", "is_foreign", "is_free", "version"),
    )
    return DeviceView(**{field: row[field] for field in same}, holder=_holder(row, caller))


def _holder(row: Row, caller: Caller) -> HolderView | None:
    namespace = row["job_namespace"]
    if namespace is None or not caller.may_know(namespace):
        return None
    return HolderView(
        job_id=row["job_uid"],
        job_name=row["job_name"],
        namespace=namespace,
        pod_set=row["pod_set"],
        index=row["pod_index"],
    )
