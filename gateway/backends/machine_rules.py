"""What the devices of one machine type must agree on; a breach is a complaint with its place.

Single fields were read before. Knows nothing of other machine types.
"""

from collections.abc import Iterable, Iterator

from gateway.backends.base import DeviceSeen
from gateway.backends.machine_fields import Complaint
from gateway.core.devices.fleet import DeviceSlot, MachineType
from gateway.core.vocabulary import DeviceKind

LISTS = {DeviceKind.GPU: "gpus", DeviceKind.RDMA: "nics"}


def require_agreement(devices: tuple[DeviceSeen, ...], topology: MachineType) -> None:
    """Refuse devices that contradict one another; raises Complaint for the first breach."""
    _require_once("name", [(f"{_at(each)}/name", each.name) for each in devices])
    _require_once("PCI address", [(f"{_at(each)}/pci", each.pci_address) for each in devices])
    for at, slot in _slots(topology):
        _require_path(at, slot)
    if topology.is_c2c:
        _require_no_switch(topology.gpus)
    _require_one_numa(topology)
    _require_known_gpus(topology)


def _at(device: DeviceSeen) -> str:
    return f"/{LISTS[device.kind]}/{device.ordinal}"


def _slots(topology: MachineType) -> Iterator[tuple[str, DeviceSlot]]:
    for key, slots in (("gpus", topology.gpus), ("nics", topology.nics)):
        yield from ((f"/{key}/{slot.ordinal}", slot) for slot in slots)


def _require_once(what: str, found: Iterable[tuple[str, str]]) -> None:
    first: dict[str, str] = {}
    for at, value in found:
        # What is not known is no contradiction.
        if value and first.setdefault(value, at) != at:
            problem = f"is {what} {value!r}, which {first[value]} has, too"
            raise Complaint(at, problem, value=value, hint=f"give each device its own {what}")


def _require_path(at: str, slot: DeviceSlot) -> None:
    if slot.switch_path and slot.switch not in slot.switch_path:
        allowed = tuple(map(str, slot.switch_path))
        hint = "name as switch one of those on the path"
        problem = f"is {slot.switch}, which is not on the device's path"
        raise Complaint(f"{at}/switch", problem, value=slot.switch, allowed=allowed, hint=hint)


def _require_no_switch(gpus: Iterable[DeviceSlot]) -> None:
    for slot in gpus:
        if slot.switch >= 0:
            hint = "remove it, or is_c2c: nearness over C2C is judged by `numa`"
            problem = "is given although is_c2c is true"
            raise Complaint(f"/gpus/{slot.ordinal}/switch", problem, value=slot.switch, hint=hint)


def _require_one_numa(topology: MachineType) -> None:
    """A switch hangs under one root, so all that it carries is of one NUMA node."""
    first: dict[int, tuple[str, int]] = {}
    for at, slot in _slots(topology):
        if slot.switch < 0 or slot.numa < 0:
            continue
        other, numa = first.setdefault(slot.switch, (at, slot.numa))
        if numa != slot.numa:
            problem = f"is {slot.numa}, but {other} on the same switch {slot.switch} has {numa}"
            hint = "a switch lies in one NUMA node: correct `numa` or `switch`"
            raise Complaint(f"{at}/numa", problem, value=slot.numa, hint=hint)


def _require_known_gpus(topology: MachineType) -> None:
    known = tuple(str(slot.ordinal) for slot in topology.gpus)
    for place, partition in enumerate(topology.partitions):
        _require_gpus(f"/partitions/{place}/gpus", partition.gpus, known)
    for place, (one, two) in enumerate(topology.links):
        _require_gpus(f"/degraded/{place}", (1 << one) | (1 << two), known)


def _require_gpus(at: str, mask: int, known: tuple[str, ...]) -> None:
    unknown = mask >> len(known)
    if unknown or not mask:
        value = len(known) + (unknown & -unknown).bit_length() - 1 if unknown else None
        problem = f"names GPU {value}, which the machine does not have" if unknown else "is empty"
        raise Complaint(at, problem, value=value, allowed=known, hint="name GPUs by ordinal")
