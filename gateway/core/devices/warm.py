"""A fleet that is kept: inventory rows that change alter only the columns of their own nodes.

What comes out equals what `fleet_of` builds from the same rows. Fleets that were given out before
stay as they are.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from gateway.core.devices.building import (
    NO_DEVICES,
    NodeDevices,
    amount_columns,
    fleet_of,
    int_column,
    is_free,
    slot_of,
)
from gateway.core.devices.fleet import DeviceSlot, Fleet
from gateway.core.devices.known_facts import NOTHING_KNOWN, KnownMachines
from gateway.core.devices.rows import DeviceRow, NodeRow
from gateway.core.vocabulary import MOST_DEVICES, DeviceHealth, DeviceKind

Item = TypeVar("Item")
Value = TypeVar("Value", bound=np.generic)
Slots = tuple[DeviceSlot, ...]
DeviceColumns = tuple[Slots, int, int]
"""Slots of one kind on a node, and the masks of all and of the free ones."""
PAIRS_A_NODE, SPARE_PAIRS = 4, 4096
"""Label pairs that are kept to be shared; more than these come from nodes that are gone."""


class FleetChange(NamedTuple):
    """A fleet, and what is different from the one given before."""

    fleet: Fleet
    rows: tuple[int, ...] | None
    """Nodes that changed, in order; None when rows may mean other nodes or devices than before."""


class FleetState:
    """Nodes and devices as last reported; older rows of the same ids are replaced."""

    def __init__(self, known: KnownMachines = NOTHING_KNOWN) -> None:
        """Start empty; the first rows to apply are all of them."""
        self._known = known
        self._nodes: dict[int, NodeRow] = {}
        self._devices: dict[int, NodeDevices] = {}
        self._pairs: dict[tuple[str, str], tuple[str, str]] = {}
        self._slots: dict[Slots, Slots] = {}
        self._fleet: Fleet | None = None
        self._row_of: dict[int, int] = {}
        self._changed: set[int] = set()

    def apply(self, nodes: Iterable[NodeRow], devices: Iterable[DeviceRow]) -> None:
        """Take changed rows; applying a row twice is harmless."""
        for node in nodes:
            old = self._nodes.get(node.node_id)
            # A watch repeats what it said; equal rows must not make a new fleet.
            if node != old:
                self._apply_node(node, old)
        by_node: dict[int, list[DeviceRow]] = {}
        for device in devices:
            if device.ordinal < MOST_DEVICES:
                by_node.setdefault(device.node_id, []).append(device)
        for node_id, rows in by_node.items():
            self._apply_devices(node_id, rows)

    def change(self, *, is_complete: bool) -> FleetChange:
        """Give the present fleet and what changed since this was last asked."""
        fleet = self._fleet
        if fleet is None:
            fleet = fleet_of(
                self._nodes.values(), self._devices, is_complete=is_complete, known=self._known
            )
            self._row_of = {node: row for row, node in enumerate(fleet.node_id.tolist())}
            rows = None
        else:
            # A node may have devices before it has a row of its own.
            known = {self._row_of[node] for node in self._changed if node in self._row_of}
            rows = tuple(sorted(known))
            fleet = replace(self._patched(fleet, list(rows)), is_complete=is_complete)
        self._fleet = fleet
        self._changed.clear()
        return FleetChange(fleet, rows)

    def _apply_node(self, node: NodeRow, old: NodeRow | None) -> None:
        # Rows are in the order of names, so a node that comes moves all behind it.
        if old is None or _identity(node) != _identity(old):
            self._fleet = None
        if old is not None and old.labels == node.labels:
            labels = old.labels
        else:
            # Most labels are the same on many nodes.
            if len(self._pairs) > PAIRS_A_NODE * len(self._nodes) + SPARE_PAIRS:
                self._pairs.clear()
            labels = tuple(self._pairs.setdefault(pair, pair) for pair in node.labels)
        self._nodes[node.node_id] = node._replace(labels=labels)
        self._changed.add(node.node_id)

    def _apply_devices(self, node_id: int, rows: list[DeviceRow]) -> None:
        old = self._devices.get(node_id, NO_DEVICES)
        gpus, gpu_all, gpu_free = self._with(
            (old.gpus, old.gpu_all, old.gpu_free),
            [row for row in rows if row.kind is DeviceKind.GPU],
        )
        nics, nic_all, nic_free = self._with(
            (old.nics, old.nic_all, old.nic_free),
            [row for row in rows if row.kind is DeviceKind.RDMA],
        )
        new = NodeDevices(gpus, nics, gpu_all, gpu_free, nic_all, nic_free)
        if new == old:
            return
        # Another topology is another machine type, and masks would mean other devices.
        if (new.gpus, new.nics) != (old.gpus, old.nics):
            self._fleet = None
        self._devices[node_id] = new
        self._changed.add(node_id)

    def _with(self, columns: DeviceColumns, rows: list[DeviceRow]) -> DeviceColumns:
        slots, every, free = columns
        for row in rows:
            bit = 1 << row.ordinal
            every = every | bit if row.is_present else every & ~bit
            free = free | bit if is_free(row) else free & ~bit
        is_known = all(_stands_in(slots, row) for row in rows)
        return slots if is_known else self._with_slots(slots, rows), every, free

    def _with_slots(
        self, slots: tuple[DeviceSlot, ...], rows: list[DeviceRow]
    ) -> tuple[DeviceSlot, ...]:
        by_ordinal = {slot.ordinal: slot for slot in slots}
        by_ordinal |= {row.ordinal: slot_of(row) for row in rows}
        changed = tuple(by_ordinal[ordinal] for ordinal in sorted(by_ordinal))
        # Nodes of one type share one tuple: comparing them is comparing identities.
        return self._slots.setdefault(changed, changed)

    def _patched(self, fleet: Fleet, rows: list[int]) -> Fleet:
        """Give a fleet with the columns of these nodes as they are now."""
        if not rows:
            return fleet
        nodes = [self._nodes[node_id] for node_id in fleet.node_id[rows].tolist()]
        held = [self._devices.get(node.node_id, NO_DEVICES) for node in nodes]
        is_available = [node.health is DeviceHealth.HEALTHY for node in nodes]
        total = amount_columns([node.total for node in nodes], fleet.resources)
        free = amount_columns([node.free for node in nodes], fleet.resources)
        return replace(
            fleet,
            is_available=_column(fleet.is_available, rows, np.array(is_available)),
            labels=_listed(fleet.labels, rows, [node.labels for node in nodes]),
            taints=_listed(fleet.taints, rows, [node.taints for node in nodes]),
            health=_listed(fleet.health, rows, [node.health for node in nodes]),
            total=_column(fleet.total, rows, total),
            free=_column(fleet.free, rows, free),
            gpu_all=_column(fleet.gpu_all, rows, int_column(held, "gpu_all")),
            gpu_free=_column(fleet.gpu_free, rows, int_column(held, "gpu_free")),
            nic_all=_column(fleet.nic_all, rows, int_column(held, "nic_all")),
            nic_free=_column(fleet.nic_free, rows, int_column(held, "nic_free")),
        )


def _identity(node: NodeRow) -> tuple[object, ...]:
    """Give what decides which nodes, machine types and resources a fleet has, and their order."""
    return node.name, node.machine_type, node.is_present, node.total.keys()


def _stands_in(slots: Slots, row: DeviceRow) -> bool:
    """Whether a device is in its slot, ordinals being without a gap; else it is looked up."""
    return row.ordinal < len(slots) and slots[row.ordinal] == slot_of(row)


def _column(column: NDArray[Value], rows: list[int], values: NDArray[Value]) -> NDArray[Value]:
    # Fleets that were given out are values; whoever holds one must not see it change.
    changed = column.copy()
    changed[rows] = values
    return changed


def _listed(column: tuple[Item, ...], rows: list[int], values: list[Item]) -> tuple[Item, ...]:
    if all(column[row] == value for row, value in zip(rows, values, strict=True)):
        return column
    changed = list(column)
    for row, value in zip(rows, values, strict=True):
        changed[row] = value
    return tuple(changed)
