"""Builds the fleet's columns from inventory rows; equal topologies become one machine type."""

from collections.abc import Mapping

import numpy as np

from gateway.core.devices.fleet import DeviceSlot, Fleet, Int64, MachineType
from gateway.core.devices.rows import DeviceRow, NodeRow
from gateway.core.resources import CPU, MEMORY, PODS
from gateway.core.vocabulary import DeviceHealth, DeviceKind

Devices = Mapping[int, Mapping[int, DeviceRow]]
"""Device rows by node id, then device id."""


def fleet_of(nodes: Mapping[int, NodeRow], devices: Devices, *, is_complete: bool) -> Fleet:
    """Give the fleet of all present nodes, sorted by name.

    A device that is missing, unhealthy, used by others or not wholly free is never in a free mask;
    one that is gone is in no mask at all.
    """
    rows = sorted((node for node in nodes.values() if node.is_present), key=lambda n: n.name)
    machines: dict[MachineType, int] = {}
    machine = []
    for node in rows:
        kind = machine_of(node, devices.get(node.node_id, {}))
        machine.append(machines.setdefault(kind, len(machines)))
    resources = _resources(rows)
    masks = _masks(rows, devices)
    return Fleet(
        node_id=np.array([node.node_id for node in rows], dtype=np.int64),
        names=tuple(node.name for node in rows),
        machine=np.array(machine, dtype=np.int32),
        machines=tuple(machines),
        is_available=np.array(
            [node.health is DeviceHealth.HEALTHY for node in rows], dtype=np.bool_
        ),
        labels=tuple(node.labels for node in rows),
        taints=tuple(node.taints for node in rows),
        resources=resources,
        total=_amounts([node.total for node in rows], resources),
        free=_amounts([node.free for node in rows], resources),
        gpu_all=masks[DeviceKind.GPU, False],
        gpu_free=masks[DeviceKind.GPU, True],
        nic_all=masks[DeviceKind.RDMA, False],
        nic_free=masks[DeviceKind.RDMA, True],
        is_complete=is_complete,
    )


def machine_of(node: NodeRow, devices: Mapping[int, DeviceRow]) -> MachineType:
    """Give a node's topology; a gap in the ordinals stays a gap in the slots."""
    slots: dict[DeviceKind, list[DeviceSlot]] = {DeviceKind.GPU: [], DeviceKind.RDMA: []}
    for device in sorted(devices.values(), key=lambda d: (d.kind, d.ordinal)):
        slots[device.kind].append(
            DeviceSlot(
                ordinal=device.ordinal,
                switch=device.switch,
                numa=device.numa,
                rail=device.rail,
                nvlink_group=device.nvlink_group,
            )
        )
    return MachineType(
        name=node.machine_type,
        gpus=tuple(slots[DeviceKind.GPU]),
        nics=tuple(slots[DeviceKind.RDMA]),
    )


def _resources(rows: list[NodeRow]) -> tuple[str, ...]:
    extended = {name for node in rows for name in node.total} - {CPU, MEMORY, PODS}
    return (CPU, MEMORY, PODS, *sorted(extended))


def _amounts(values: list[dict[str, int]], resources: tuple[str, ...]) -> Int64:
    table = [[value.get(name, 0) for name in resources] for value in values]
    return np.array(table, dtype=np.int64).reshape(len(values), len(resources))


def _masks(rows: list[NodeRow], devices: Devices) -> dict[tuple[DeviceKind, bool], Int64]:
    """Give masks by (kind, only free ones)."""
    masks = {
        (kind, only_free): np.zeros(len(rows), dtype=np.int64)
        for kind in DeviceKind
        for only_free in (False, True)
    }
    for index, node in enumerate(rows):
        for device in devices.get(node.node_id, {}).values():
            if not device.is_present:
                continue
            bit = np.int64(1 << device.ordinal)
            masks[device.kind, False][index] |= bit
            if is_free(device):
                masks[device.kind, True][index] |= bit
    return masks


def is_free(device: DeviceRow) -> bool:
    """Whether a new reservation may take the whole device."""
    return (
        device.health is DeviceHealth.HEALTHY
        and not device.is_foreign
        and device.units_free == device.units_total
    )
