"""The built-in machine types with their device topology, read from `data/machines.yaml`.

Facts only: it knows nothing of nodes that exist, of health or of what is in use.
"""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import Any, Final

import yaml

from gateway.backends.base import DeviceSeen
from gateway.core.resources import CPU, MEMORY, PODS
from gateway.core.vocabulary import DeviceKind
from gateway.errors import InvalidInput

# A namespace of its own for version 5 ids (RFC 9562): the same node has the same GPUs after every
# restart, and no other program makes the same ids.
_UUIDS: Final = uuid.UUID("6b3c4b6e-5d0a-5f0e-9a7e-3f1b6f6f2f10")
_BYTES_PER_GIB: Final = 1024**3


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """One machine type; `devices` carry topology and names, their `uuid` is empty."""

    name: str
    total: Mapping[str, int]
    """Allocatable in base units: cpu, memory, pods."""
    labels: Mapping[str, str]
    devices: tuple[DeviceSeen, ...]

    def devices_of(self, node: str) -> tuple[DeviceSeen, ...]:
        """Give the devices of one node of this type; GPU uuids depend on the node's name only."""
        return tuple(_with_uuid(device, node) for device in self.devices)


def machine_names() -> tuple[str, ...]:
    """Give the names of all built-in machine types."""
    return tuple(_catalogue())


def machine(name: str) -> Machine:
    """Look one machine type up; raises InvalidInput with the known names."""
    found = _catalogue().get(name)
    if found is None:
        raise InvalidInput(
            f"machine type {name!r} is not in the catalogue",
            value=name,
            allowed=machine_names(),
            hint="use one of the built-in machine types",
        )
    return found


# Frozen values behind a read-only mapping, so that all callers can share one reading.
@cache
def _catalogue() -> Mapping[str, Machine]:
    # By the package's resources: an installed wheel may be a zip file without paths.
    text = resources.files("gateway.backends").joinpath("data/machines.yaml").read_text("utf-8")
    document: Mapping[str, Mapping[str, Any]] = yaml.safe_load(text)
    return MappingProxyType({name: _machine(name, facts) for name, facts in document.items()})


def _machine(name: str, facts: Mapping[str, Any]) -> Machine:
    gpus = [_device(DeviceKind.GPU, i, entry) for i, entry in enumerate(facts["gpus"])]
    nics = [_device(DeviceKind.RDMA, i, entry) for i, entry in enumerate(facts["nics"])]
    return Machine(
        name=name,
        total=MappingProxyType(
            {
                CPU: facts["cpu_cores"] * 1000,
                MEMORY: facts["memory_gib"] * _BYTES_PER_GIB,
                PODS: facts["pods"],
            }
        ),
        labels=MappingProxyType(dict(facts["labels"])),
        devices=(*gpus, *nics),
    )


def _device(kind: DeviceKind, ordinal: int, entry: Mapping[str, Any]) -> DeviceSeen:
    return DeviceSeen(
        kind=kind,
        ordinal=ordinal,
        name=entry.get("name", f"nvidia{ordinal}"),
        pci_address=entry.get("pci", ""),
        switch=entry["switch"],
        numa=entry["numa"],
        rail=entry["rail"],
        nvlink_group=entry.get("nvlink", -1),
    )


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
