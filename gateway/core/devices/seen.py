"""What inventory sees: one node with its devices, as any source reports it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from gateway.core.vocabulary import DeviceHealth, DeviceKind


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceSeen:
    """A device of a node, as inventory reports it."""

    kind: DeviceKind
    ordinal: int
    name: str
    uuid: str = ""
    pci_address: str = ""
    switch: int = -1
    numa: int = -1
    rail: int = -1
    nvlink_group: int = -1
    health: DeviceHealth = DeviceHealth.HEALTHY
    is_foreign: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSeen:
    """A node as inventory reports it; amounts in base units, allocatable minus foreign use."""

    name: str
    uid: str
    machine_type: str
    health: DeviceHealth
    labels: Mapping[str, str]
    taints: tuple[tuple[str, str, str], ...] = ()
    """(key, value, effect)."""
    total: Mapping[str, int] = field(default_factory=dict)
    """Allocatable: cpu millicores, memory bytes, pods, extended resources; no GPUs, no NICs."""
    foreign: Mapping[str, int] = field(default_factory=dict)
    """Requested by pods that are not the gateway's."""
    devices: tuple[DeviceSeen, ...] = ()
