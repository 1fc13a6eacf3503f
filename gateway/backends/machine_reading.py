"""Reads one file of a machine type, and says what is wrong with it: file, field, value, allowed.

Form and single fields are judged here, what must agree in `machine_rules`. Reads no files itself.
"""

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

import yaml

from gateway.backends.base import DeviceSeen
from gateway.backends.machine_fields import (
    Complaint,
    field_of,
    require_keys,
    text_of,
    whole,
    whole_list,
)
from gateway.backends.machine_rules import require_agreement
from gateway.backends.machine_types import Machine
from gateway.core.devices.fleet import DeviceSlot, MachineType, Partition
from gateway.core.resources import CPU, MEMORY, PODS
from gateway.core.vocabulary import MOST_DEVICES, DeviceKind
from gateway.errors import InvalidInput

_BYTES_PER_GIB: Final = 1024**3
_NAME = re.compile(r"[a-z][a-z0-9-]{0,62}")
_PCI = re.compile(r"[0-9a-f]{4}:[0-9a-f]{2}:[01][0-9a-f]\.[0-7]")
REQUIRED = ("cpu_cores", "memory_gib", "gpus", "nics")
KEYS = (
    *REQUIRED,
    *("pods", "labels", "match", "partitions", "degraded", "nvlinks", "is_c2c"),
)
GPU_KEYS = ("name", "pci", "switch", "path", "root", "numa", "rail", "nvlink")
NIC_KEYS = ("name", "pci", "switch", "path", "root", "numa", "rail")
PARTITION_KEYS = ("gpus", "bandwidth")
PODS_USUAL: Final = 110
"""The kubelet's own default."""


def read_machine(name: str, text: str, origin: str) -> Machine:
    """Read a machine type; `origin` is the file's name for messages.

    Raises:
        InvalidInput: with file, field, value and what is allowed.
    """
    try:
        return _machine(name, _document(text), origin)
    except Complaint as error:
        raise InvalidInput(
            f"{origin}: {error.pointer or '/'} {error.problem}",
            pointer=error.pointer,
            value=error.value,
            allowed=error.allowed,
            hint=error.hint,
        ) from error


def _document(text: str) -> Mapping[str, Any]:
    try:
        document = yaml.safe_load(text)
    except yaml.YAMLError as error:
        words = " ".join(str(error).split())
        raise Complaint("", f"is not YAML: {words}", hint="correct the YAML") from error
    return require_keys(document, "", KEYS, REQUIRED)


def _machine(name: str, facts: Mapping[str, Any], origin: str) -> Machine:
    if not _NAME.fullmatch(name):
        hint = "name the file in lower case letters, digits and dashes, such as my-board.yaml"
        raise Complaint("", f"gives the name {name!r}", value=name, hint=hint)
    devices = (
        *_devices(DeviceKind.GPU, facts, "gpus", GPU_KEYS),
        *_devices(DeviceKind.RDMA, facts, "nics", NIC_KEYS),
    )
    topology = _topology(name, facts, devices)
    require_agreement(devices, topology)
    return Machine(
        name=name,
        total=MappingProxyType(
            {
                CPU: whole(facts, "cpu_cores", "", least=1) * 1000,
                MEMORY: whole(facts, "memory_gib", "", least=1) * _BYTES_PER_GIB,
                PODS: whole(facts, "pods", "", default=PODS_USUAL, least=1),
            }
        ),
        labels=_labels(facts, "labels"),
        match=_labels(facts, "match"),
        devices=devices,
        topology=topology,
        origin=origin,
    )


def _labels(facts: Mapping[str, Any], key: str) -> Mapping[str, str]:
    found = field_of(facts, key, "", dict, "a mapping of label to value") or {}
    return MappingProxyType({label: text_of(found, label, f"/{key}") for label in found})


def _entries(facts: Mapping[str, Any], key: str) -> list[Any]:
    found = field_of(facts, key, "", list, "a list") or []
    if len(found) > MOST_DEVICES:
        hint = f"list at most {MOST_DEVICES}"
        raise Complaint(f"/{key}", f"has {len(found)} entries", value=len(found), hint=hint)
    return list(found)


def _devices(
    kind: DeviceKind, facts: Mapping[str, Any], key: str, keys: tuple[str, ...]
) -> tuple[DeviceSeen, ...]:
    return tuple(
        _device(kind, ordinal, require_keys(entry, f"/{key}/{ordinal}", keys), f"/{key}/{ordinal}")
        for ordinal, entry in enumerate(_entries(facts, key))
    )


def _device(kind: DeviceKind, ordinal: int, entry: Mapping[str, Any], at: str) -> DeviceSeen:
    # A GPU is told by its number on the node; a NIC only by the name that NCCL_IB_HCA takes.
    name = text_of(entry, "name", at, default=f"nvidia{ordinal}" if kind is DeviceKind.GPU else "")
    if not name:
        raise Complaint(f"{at}/name", "is missing", hint="give the NIC's RDMA device name")
    pci = text_of(entry, "pci", at)
    if pci and not _PCI.fullmatch(pci):
        hint = 'write it in lower case and quotes, as "0000:1b:00.0"'
        raise Complaint(f"{at}/pci", f"is {pci!r}, no PCI address", value=pci, hint=hint)
    return DeviceSeen(
        kind=kind,
        ordinal=ordinal,
        name=name,
        pci_address=pci,
        switch=whole(entry, "switch", at),
        numa=whole(entry, "numa", at),
        rail=whole(entry, "rail", at),
        nvlink_group=whole(entry, "nvlink", at),
    )


def _topology(name: str, facts: Mapping[str, Any], devices: tuple[DeviceSeen, ...]) -> MachineType:
    def slots(kind: DeviceKind, key: str) -> tuple[DeviceSlot, ...]:
        alike = [device for device in devices if device.kind is kind]
        return tuple(
            _slot(device, facts[key][device.ordinal], f"/{key}/{device.ordinal}")
            for device in alike
        )

    is_c2c = field_of(facts, "is_c2c", "", bool, "true or false")
    return MachineType(
        name=name,
        gpus=slots(DeviceKind.GPU, "gpus"),
        nics=slots(DeviceKind.RDMA, "nics"),
        partitions=_each(facts, "partitions", _partition),
        links=_each(facts, "degraded", _pair),
        nvlinks=whole(facts, "nvlinks", "", default=0),
        is_c2c=bool(is_c2c),
    )


def _slot(device: DeviceSeen, entry: Mapping[str, Any], at: str) -> DeviceSlot:
    return DeviceSlot(
        ordinal=device.ordinal,
        switch=device.switch,
        numa=device.numa,
        rail=device.rail,
        nvlink_group=device.nvlink_group,
        switch_path=whole_list(entry, "path", at),
        root=whole(entry, "root", at),
    )


def _each(facts: Mapping[str, Any], key: str, read: Callable[[Any, str], Any]) -> tuple[Any, ...]:
    found = field_of(facts, key, "", list, "a list") or []
    return tuple(read(entry, f"/{key}/{place}") for place, entry in enumerate(found))


def _partition(entry: object, at: str) -> Partition:
    facts = require_keys(entry, at, PARTITION_KEYS, ("gpus",))
    gpus = set(whole_list(facts, "gpus", at))
    bandwidth = whole(facts, "bandwidth", at, default=0)
    return Partition(len(gpus), sum(1 << gpu for gpu in gpus if gpu < MOST_DEVICES), bandwidth)


def _pair(entry: object, at: str) -> tuple[int, int]:
    pair = whole_list({"gpus": entry}, "gpus", at)
    if len(pair) != 2 or pair[0] == pair[1]:  # noqa: PLR2004 - a pair
        raise Complaint(at, "is no pair of GPUs", value=entry, hint="write [0, 2]")
    return min(pair), max(pair)
