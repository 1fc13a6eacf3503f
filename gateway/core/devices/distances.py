"""How far apart two devices of one machine type are, in the words that NCCL's matrix uses.

For people and documents; the placement uses the masks of `topology`, which say the same more
coarsely. Knows nothing of nodes or of what is free.
"""

from enum import StrEnum

from gateway.core.devices.fleet import DeviceSlot, MachineType
from gateway.core.devices.topology import is_joined


class Distance(StrEnum):
    """What traffic between two devices crosses, the nearest first (NVIDIA NCCL user guide)."""

    PIX = "PIX"
    """One PCIe switch."""
    PXB = "PXB"
    """Several PCIe switches, no root."""
    PHB = "PHB"
    """One PCIe root, that is the CPU."""
    NODE = "NODE"
    """Several roots of one NUMA node."""
    SYS = "SYS"
    """The link between NUMA nodes."""
    UNKNOWN = "?"
    """No source says."""


def distance_to_nic(machine: MachineType, gpu: DeviceSlot, nic: DeviceSlot) -> Distance:
    """Give the distance of a GPU and a NIC."""
    return _numa_distance(gpu, nic) if machine.is_c2c else _pcie_distance(gpu, nic)


def link_of_gpus(machine: MachineType, one: DeviceSlot, two: DeviceSlot) -> str:
    """Give how two GPUs are joined: NV18 for 18 NVLinks, NV where nobody counted, else a class."""
    if is_joined(machine, *sorted((one.ordinal, two.ordinal))):
        return f"NV{machine.nvlinks or ''}"
    return distance_to_nic(machine, one, two).value


def gpu_links(machine: MachineType) -> tuple[tuple[str, ...], ...]:
    """Give the matrix GPU by GPU; X on its diagonal."""
    return tuple(
        tuple("X" if one is two else link_of_gpus(machine, one, two) for two in machine.gpus)
        for one in machine.gpus
    )


def nic_distances(machine: MachineType) -> tuple[tuple[str, ...], ...]:
    """Give the matrix GPU by NIC."""
    return tuple(
        tuple(distance_to_nic(machine, gpu, nic).value for nic in machine.nics)
        for gpu in machine.gpus
    )


def _pcie_distance(one: DeviceSlot, two: DeviceSlot) -> Distance:
    rules = (
        (_is_same(_lowest(one), _lowest(two)), Distance.PIX),
        (_is_same(one.switch, two.switch), Distance.PXB),
        (not set(one.switch_path).isdisjoint(two.switch_path), Distance.PXB),
        (_is_same(one.root, two.root), Distance.PHB),
    )
    return next((found for holds, found in rules if holds), _numa_distance(one, two))


def _numa_distance(one: DeviceSlot, two: DeviceSlot) -> Distance:
    # What nobody told is not "far": a reader would take it for a fact.
    if min(one.numa, two.numa) < 0:
        return Distance.UNKNOWN
    return Distance.NODE if one.numa == two.numa else Distance.SYS


def _lowest(slot: DeviceSlot) -> int:
    return slot.switch_path[-1] if slot.switch_path else slot.switch


def _is_same(one: int, two: int) -> bool:
    return one == two >= 0
