"""What a machine type is: amounts, labels and devices that all its nodes have alike.

Facts only: it knows nothing of files, of nodes that exist, of health or of what is in use.
"""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from gateway.backends.base import DeviceSeen
from gateway.core.devices.fleet import MachineType
from gateway.core.vocabulary import DeviceKind

# A namespace of its own for version 5 ids (RFC 9562): the same node has the same GPUs after every
# restart, and no other program makes the same ids.
_UUIDS: Final = uuid.UUID("6b3c4b6e-5d0a-5f0e-9a7e-3f1b6f6f2f10")


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """One machine type; `devices` carry topology and names, their `uuid` is empty."""

    name: str
    total: Mapping[str, int]
    """Allocatable in base units: cpu, memory, pods."""
    labels: Mapping[str, str]
    devices: tuple[DeviceSeen, ...]
    topology: MachineType
    """The same devices as the core sees them, with every fact that is known."""
    match: Mapping[str, str] = field(default_factory=dict)
    """Labels by which a node of this type is recognised; without any, only by its own label."""
    origin: str = ""
    """Where it is written: a file name."""

    def devices_of(self, node: str) -> tuple[DeviceSeen, ...]:
        """Give the devices of one node of this type; GPU uuids depend on the node's name only."""
        return tuple(_with_uuid(device, node) for device in self.devices)

    def named(self, kind: DeviceKind) -> tuple[DeviceSeen, ...]:
        """Give the devices of one kind, by ordinal."""
        return tuple(device for device in self.devices if device.kind is kind)


def _with_uuid(device: DeviceSeen, node: str) -> DeviceSeen:
    if device.kind is not DeviceKind.GPU:
        return device  # an RDMA device is named by its name, as NCCL_IB_HCA does
    # A constructor call is three times cheaper than dataclasses.replace on a large fleet.
    return DeviceSeen(
        kind=device.kind,
        ordinal=device.ordinal,
        name=device.name,
        uuid=f"GPU-{uuid.uuid5(_UUIDS, f'{node}/{device.kind}/{device.ordinal}')}",
        pci_address=device.pci_address,
        switch=device.switch,
        numa=device.numa,
        rail=device.rail,
        nvlink_group=device.nvlink_group,
    )
