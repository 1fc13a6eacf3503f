"""Nodes as columns, and the topology of the few machine types they are made of.

A node's devices are bits: bit i of a GPU mask is the GPU of ordinal i of that machine type, the
same for RDMA NICs. The database maps (node, kind, ordinal) to its device row.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gateway.core.resources.node_rules import Taint
from gateway.core.vocabulary import DeviceHealth

Int64 = NDArray[np.int64]
Int32 = NDArray[np.int32]
Bool = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceSlot:
    """Place of one device inside a machine type; -1 where a fact is unknown."""

    ordinal: int
    switch: int = -1
    """Identity of the PCIe switch it hangs under; equal number, same switch."""
    numa: int = -1
    rail: int = -1
    """Rail of a NIC: NICs of equal rail on different nodes share a leaf switch."""
    nvlink_group: int = -1
    switch_path: tuple[int, ...] = ()
    """Switches above it from the root down, `switch` among them; empty where nobody told."""
    root: int = -1
    """PCIe root complex."""


class Partition(NamedTuple):
    """GPUs that a machine can join by NVLink apart from its others."""

    size: int
    gpus: int
    """Mask by ordinal."""
    bandwidth: int = 0
    """Of a ring through them, in GB/s; 0 where nobody measured it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineType:
    """Topology that nodes of one kind share; slots are in order of ordinal, from 0."""

    name: str
    gpus: tuple[DeviceSlot, ...] = ()
    nics: tuple[DeviceSlot, ...] = ()
    partitions: tuple[Partition, ...] = ()
    """Allowed NVLink groups; empty for the usual ones, which follow from the NVLink groups."""
    links: tuple[tuple[int, int], ...] = ()
    """Pairs of GPU ordinals, the lower first, of one NVLink group whose link is down or slow."""
    nvlinks: int = 0
    """NVLinks between two GPUs of a group; 0 where nobody told."""
    is_c2c: bool = False
    """GPUs are reached over C2C, not PCIe: nearness is judged by NUMA node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """Known nodes, row i of every column being node i, sorted by name.

    `total` and `free` have shape (nodes, resources), columns in the order of `resources`, in base
    units: cpu millicores, memory bytes, pods, then extended resources. GPUs and NICs are not in
    them: they are counted by the masks. Free masks hold only healthy, unheld devices that nobody
    else uses; the all-masks hold every device that exists.
    """

    node_id: Int64
    # Sorted, so that rows mean the same nodes in any two fleets of one inventory.
    names: tuple[str, ...]
    machine: Int32
    """Index into `machines`."""
    machines: tuple[MachineType, ...]
    is_available: Bool
    """Healthy and not cordoned."""
    labels: tuple[tuple[tuple[str, str], ...], ...]
    """Sorted label pairs of each node."""
    taints: tuple[tuple[Taint, ...], ...]
    resources: tuple[str, ...]
    total: Int64
    free: Int64
    gpu_all: Int64
    # 62 bits are used at most: the sign must stay out of bit counts and shifts.
    gpu_free: Int64
    nic_all: Int64
    nic_free: Int64
    health: tuple[DeviceHealth, ...]
    """Of each node, for words only; `is_available` decides."""
    is_complete: bool = True
    """False while inventory is still being read: then nothing "can never fit"."""

    def __len__(self) -> int:
        """Number of nodes."""
        return len(self.names)
