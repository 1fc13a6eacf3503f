"""Facts of a machine type that no device row tells: partitions, bad links, C2C.

They are those of whoever knows the hardware, by name of the machine type. Pure; knows no nodes.
"""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from gateway.core.devices.fleet import DeviceSlot, MachineType

KnownMachines = Mapping[str, MachineType]
"""Machine types by the name that nodes give."""
NOTHING_KNOWN: Final[KnownMachines] = MappingProxyType({})


def with_facts(seen: MachineType, known: MachineType | None) -> MachineType:
    """Give a machine type as its nodes show it, with what is known of it beside.

    Facts name GPUs by ordinal, so they count only where the nodes' GPUs are in the known places.
    """
    if known is None or _places(seen) != _places(known):
        return seen
    return replace(
        seen,
        partitions=known.partitions,
        links=known.links,
        nvlinks=known.nvlinks,
        is_c2c=known.is_c2c,
    )


def _places(machine: MachineType) -> list[tuple[int, ...]]:
    return [_place(slot) for slot in machine.gpus]


def _place(slot: DeviceSlot) -> tuple[int, ...]:
    return slot.ordinal, slot.switch, slot.numa, slot.nvlink_group
