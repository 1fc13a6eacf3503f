"""Inventory rows as the database gives them to the mirror: one node, one device."""

from typing import NamedTuple

from gateway.core.resources.node_rules import Taint
from gateway.core.vocabulary import DeviceHealth, DeviceKind


class NodeRow(NamedTuple):
    """A node; amounts in base units, `total` and `free` by resource name (no gpu, no rdma)."""

    node_id: int
    name: str
    machine_type: str
    health: DeviceHealth
    is_present: bool
    labels: tuple[tuple[str, str], ...]
    taints: tuple[Taint, ...]
    total: dict[str, int]
    free: dict[str, int]


class DeviceRow(NamedTuple):
    """A device with its place; `units_free` of `units_total` are not reserved by us."""

    device_id: int
    node_id: int
    kind: DeviceKind
    ordinal: int
    switch: int
    numa: int
    rail: int
    nvlink_group: int
    health: DeviceHealth
    is_present: bool
    is_foreign: bool
    """Somebody else uses it."""
    units_total: int
    units_free: int
