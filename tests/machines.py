"""Machine types for tests of device selection: those of the catalogue, and odd ones by name."""

from collections.abc import Iterable, Sequence

from gateway.backends.machine_catalogue import machine, machine_names
from gateway.core.devices.fleet import DeviceSlot, MachineType


def of_catalogue(name: str) -> MachineType:
    """Give a machine type of the catalogue as the core sees it."""
    return machine(name).topology


def catalogue_types() -> list[MachineType]:
    """Give all machine types of the catalogue."""
    return [of_catalogue(name) for name in machine_names()]


def slots_of(
    switches: Sequence[int], numas: Sequence[int] = (), nvlinks: Sequence[int] = ()
) -> tuple[DeviceSlot, ...]:
    """Give slots by switch; NUMA nodes and NVLink groups are unknown unless given."""
    numas = numas or [-1] * len(switches)
    nvlinks = nvlinks or [-1] * len(switches)
    return tuple(
        DeviceSlot(ordinal=ordinal, switch=switch, numa=numa, nvlink_group=nvlink)
        for ordinal, (switch, numa, nvlink) in enumerate(zip(switches, numas, nvlinks, strict=True))
    )


def mask_of(slots: Iterable[DeviceSlot]) -> int:
    """Give the mask of these devices."""
    return sum(1 << slot.ordinal for slot in slots)


_HALVES = [0, 0, 0, 0, 1, 1, 1, 1]
ODD = {
    # As some B200 boards are wired: GPU 0 goes with the last NIC.
    "GPU order is not NIC order": MachineType(
        name="reversed",
        gpus=slots_of(range(8), _HALVES, [0] * 8),
        nics=slots_of([7, 6, 5, 4, 3, 2, 1, 0], _HALVES[::-1]),
    ),
    "two GPUs on one NIC": MachineType(
        name="shared NICs",
        gpus=slots_of([0, 0, 1, 1, 2, 2, 3, 3], _HALVES),
        nics=slots_of([0, 1, 2, 3], [0, 0, 1, 1]),
    ),
    "four NICs per GPU": MachineType(
        name="many NICs",
        gpus=slots_of([0, 1], [0, 1]),
        nics=slots_of([0, 0, 0, 0, 1, 1, 1, 1], _HALVES),
    ),
    "no topology data": MachineType(name="bare", gpus=slots_of([-1] * 8), nics=slots_of([-1] * 4)),
    "equal NUMA only": MachineType(
        name="C2C", gpus=slots_of([-1] * 4, [0, 0, 1, 1]), nics=slots_of([-1] * 4, [0, 0, 1, 1])
    ),
    "one pair without its link": MachineType(
        name="one bad link",
        gpus=slots_of([0] * 4, [0] * 4, [0] * 4),
        nics=slots_of([0, 0], [0, 0]),
        links=((0, 1),),
    ),
    "C2C beside PCIe switches": MachineType(
        name="C2C with switches",
        gpus=slots_of([0, 1, 2, 3], [0, 0, 1, 1], [0] * 4),
        nics=slots_of([0, 1, 2, 3], [0, 0, 1, 1]),
        is_c2c=True,
    ),
    "degraded NVLink": MachineType(
        name="one dead link",
        gpus=slots_of(range(8), _HALVES, [0, 0, -1, 0, 0, 0, 0, 0]),
        nics=slots_of(range(8), _HALVES),
    ),
}
"""Machines that selection must get right, by the case they stand for."""

ALL = {**{name: of_catalogue(name) for name in machine_names()}, **ODD}
