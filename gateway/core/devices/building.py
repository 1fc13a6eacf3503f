"""Builds the fleet's columns from inventory rows; equal topologies become one machine type."""

from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from gateway.core.devices.fleet import DeviceSlot, Fleet, Int64, MachineType
from gateway.core.devices.known_facts import NOTHING_KNOWN, KnownMachines, with_facts
from gateway.core.devices.rows import DeviceRow, NodeRow
from gateway.core.resources import CPU, MEMORY, PODS
from gateway.core.vocabulary import MOST_DEVICES, DeviceHealth, DeviceKind


class NodeDevices(NamedTuple):
    """A node's devices: the topology, and masks by ordinal of all and of the free ones."""

    gpus: tuple[DeviceSlot, ...] = ()
    nics: tuple[DeviceSlot, ...] = ()
    gpu_all: int = 0
    gpu_free: int = 0
    nic_all: int = 0
    nic_free: int = 0


NO_DEVICES = NodeDevices()


def devices_of_node(rows: Iterable[DeviceRow]) -> NodeDevices:
    """Give one node's devices.

    A device that is missing, unhealthy, used by others or not wholly free is never in a free mask;
    one that is gone is in no mask at all, and its slot stays, so that ordinals keep their meaning.
    """
    # Further ones fit no mask and are left alone.
    known = sorted((row for row in rows if row.ordinal < MOST_DEVICES), key=lambda row: row.ordinal)
    gpus = [row for row in known if row.kind is DeviceKind.GPU]
    nics = [row for row in known if row.kind is DeviceKind.RDMA]
    gpu_all, gpu_free = _masks(gpus)
    nic_all, nic_free = _masks(nics)
    return NodeDevices(
        gpus=tuple(map(slot_of, gpus)),
        nics=tuple(map(slot_of, nics)),
        gpu_all=gpu_all,
        gpu_free=gpu_free,
        nic_all=nic_all,
        nic_free=nic_free,
    )


def _masks(rows: list[DeviceRow]) -> tuple[int, int]:
    """Give the masks of the devices that are there, and of those that are free."""
    return _mask(row for row in rows if row.is_present), _mask(filter(is_free, rows))


def fleet_of(
    nodes: Iterable[NodeRow],
    devices: Mapping[int, NodeDevices],
    *,
    is_complete: bool,
    known: KnownMachines = NOTHING_KNOWN,
) -> Fleet:
    """Give the fleet of all present nodes, sorted by name; `devices` by node id."""
    rows = _present(nodes)
    held = [devices.get(node.node_id, NO_DEVICES) for node in rows]
    machines, machine = _machines(rows, held, known)
    resources = _resources(rows)
    return Fleet(
        node_id=int_column(rows, "node_id"),
        names=tuple(node.name for node in rows),
        machine=np.array(machine, dtype=np.int32),
        machines=machines,
        is_available=np.array(
            [node.health is DeviceHealth.HEALTHY for node in rows], dtype=np.bool_
        ),
        labels=tuple(node.labels for node in rows),
        taints=tuple(node.taints for node in rows),
        resources=resources,
        total=amount_columns([node.total for node in rows], resources),
        free=amount_columns([node.free for node in rows], resources),
        gpu_all=int_column(held, "gpu_all"),
        gpu_free=int_column(held, "gpu_free"),
        nic_all=int_column(held, "nic_all"),
        nic_free=int_column(held, "nic_free"),
        health=tuple(node.health for node in rows),
        is_complete=is_complete,
    )


def int_column(rows: Sequence[object], field: str) -> Int64:
    """Give one field of all rows as a column."""
    return np.fromiter(map(attrgetter(field), rows), dtype=np.int64, count=len(rows))


def _present(nodes: Iterable[NodeRow]) -> list[NodeRow]:
    # By name, so that equal inventories give equal fleets in whatever order they were read.
    return sorted((node for node in nodes if node.is_present), key=lambda node: node.name)


def is_free(device: DeviceRow) -> bool:
    """Whether a new reservation may take the whole device."""
    return (
        device.is_present
        and device.health is DeviceHealth.HEALTHY
        and not device.is_foreign
        # Shared devices are not given out whole as long as anybody holds a part of them.
        and device.units_free == device.units_total
    )


def _machines(
    rows: list[NodeRow], held: list[NodeDevices], known: KnownMachines
) -> tuple[tuple[MachineType, ...], list[int]]:
    """Give the machine types, and each node's index into them; equal slots are one type."""
    # Nodes of two names are one type, unless something is known of the one by its name.
    kinds: dict[tuple[tuple[DeviceSlot, ...], tuple[DeviceSlot, ...], MachineType | None], int] = {}
    machines: list[MachineType] = []
    machine = []
    for node, devices in zip(rows, held, strict=True):
        facts = known.get(node.machine_type)
        index = kinds.setdefault((devices.gpus, devices.nics, facts), len(machines))
        if index == len(machines):
            seen = MachineType(name=node.machine_type, gpus=devices.gpus, nics=devices.nics)
            machines.append(with_facts(seen, facts))
        machine.append(index)
    return tuple(machines), machine


def slot_of(row: DeviceRow) -> DeviceSlot:
    """Give a device's place in its machine type."""
    return DeviceSlot(
        ordinal=row.ordinal,
        switch=row.switch,
        numa=row.numa,
        rail=row.rail,
        nvlink_group=row.nvlink_group,
    )


def _mask(rows: Iterable[DeviceRow]) -> int:
    return sum(1 << row.ordinal for row in rows)


def _resources(rows: list[NodeRow]) -> tuple[str, ...]:
    extended = {name for node in rows for name in node.total} - {CPU, MEMORY, PODS}
    # A fixed order, because need and free amounts are compared column by column.
    return (CPU, MEMORY, PODS, *sorted(extended))


def amount_columns(values: list[dict[str, int]], resources: tuple[str, ...]) -> Int64:
    """Give amounts as one row for each node, a column for each resource."""
    table = [[value.get(name, 0) for name in resources] for value in values]
    return np.array(table, dtype=np.int64).reshape(len(values), len(resources))
