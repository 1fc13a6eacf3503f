"""Known machine types as users read them: a list, and one with its wiring."""

from gateway.backends.base import DeviceSeen
from gateway.backends.machine_catalogue import machine, machine_names, machines
from gateway.backends.machine_drawing import count_of, drawing
from gateway.backends.machine_types import Machine
from gateway.core.devices.distances import gpu_links, nic_distances
from gateway.core.devices.fleet import DeviceSlot, MachineType, Partition
from gateway.core.devices.masks import ordinals_of
from gateway.core.devices.topology import layout_of
from gateway.core.vocabulary import DeviceKind
from gateway.errors import NotFound
from gateway.schemas.device_types import (
    DevicePlaceView,
    DeviceTypeDetail,
    DeviceTypeView,
    PartitionView,
)


def list_device_types() -> list[DeviceTypeView]:
    """Give all known machine types."""
    return [DeviceTypeView.model_validate(_summary(kind)) for kind in machines().values()]


def get_device_type(name: str) -> DeviceTypeDetail:
    """Give one machine type with its wiring; raises NotFound."""
    if name not in machine_names():
        raise NotFound(
            f"machine type {name[:253]!r} does not exist",
            value=name[:253],
            allowed=machine_names(),
            hint="see: gateway device types",
        )
    return detail_of(machine(name))


def detail_of(kind: Machine) -> DeviceTypeDetail:
    """Give a machine type with its wiring."""
    slots = {
        DeviceKind.GPU: kind.topology.gpus,
        DeviceKind.RDMA: kind.topology.nics,
    }
    return DeviceTypeDetail(
        **_summary(kind),
        devices=tuple(_place(each, slots[each.kind][each.ordinal]) for each in kind.devices),
        partitions=tuple(map(_partition, kind.topology.partitions)),
        gpu_links=gpu_links(kind.topology),
        nic_distances=nic_distances(kind.topology),
        drawing=drawing(kind),
    )


def _summary(kind: Machine) -> dict[str, object]:
    return {
        "name": kind.name,
        "gpus": len(kind.topology.gpus),
        "nics": len(kind.topology.nics),
        "switches": count_of(kind, "switch"),
        "numa_nodes": count_of(kind, "numa"),
        "pairs": _pairs(kind.topology),
        "is_c2c": kind.topology.is_c2c,
        "match": dict(kind.match),
    }


def _pairs(topology: MachineType) -> int:
    return sum(gpus.bit_count() for gpus, nics in layout_of(topology).switches if nics)


def _place(device: DeviceSeen, slot: DeviceSlot) -> DevicePlaceView:
    return DevicePlaceView(
        kind=device.kind,
        ordinal=device.ordinal,
        name=device.name,
        pci_address=device.pci_address,
        switch=slot.switch,
        switch_path=slot.switch_path,
        root=slot.root,
        numa=slot.numa,
        rail=slot.rail,
        nvlink_group=slot.nvlink_group,
    )


def _partition(partition: Partition) -> PartitionView:
    gpus = tuple(ordinals_of(partition.gpus))
    return PartitionView(gpus=gpus, bandwidth=partition.bandwidth)
