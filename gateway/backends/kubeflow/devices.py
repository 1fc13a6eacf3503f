"""Reads which devices a node has, from its topology annotation, machine type or counts. Pure.

Sources, in this order: the annotation `training-gateway.io/topology`, the catalogue's machine type
that the node's labels name, and as a last resort the counts that device plugins report, without any
topology. Nothing that a node says makes it raise.
"""

import json
from dataclasses import replace
from typing import Final

from gateway.backends.base import DeviceSeen
from gateway.backends.kubeflow.json_paths import Json, text_at, texts_at, whole_at
from gateway.backends.kubeflow.names import TOPOLOGY_ANNOTATION, is_gpu, is_rdma
from gateway.backends.kubeflow.requests import total_of
from gateway.backends.machine_catalogue import machine_matching
from gateway.core.vocabulary import (
    INSTANCE_TYPE_LABEL,
    MACHINE_TYPE_LABEL,
    DeviceHealth,
    DeviceKind,
)

MOST_WHOLE_NICS: Final = 32
"""Device plugins that share a NIC report hundreds; such a count says nothing about NICs."""
MOST_DEVICES: Final = 256
KINDS: Final = frozenset(DeviceKind)


def machine_type_of(node: Json) -> str:
    """Give the node's machine type: our own label, else the cloud's."""
    labels = texts_at(node, "metadata", "labels")
    return labels.get(MACHINE_TYPE_LABEL) or labels.get(INSTANCE_TYPE_LABEL) or ""


def devices_of(node: Json, allocatable: dict[str, int]) -> tuple[DeviceSeen, ...]:
    """Give the node's devices; GPUs that its device plugin does not report are unhealthy."""
    gpus = total_of(allocatable, is_gpu)
    known = _annotated(node) or _catalogued(node)
    if known:
        return tuple(_with_health(device, gpus) for device in known)
    return (
        *_counted(DeviceKind.GPU, "nvidia", gpus),
        *_counted(DeviceKind.RDMA, "rdma", _nics(allocatable)),
    )


def _with_health(device: DeviceSeen, gpus: int) -> DeviceSeen:
    # The kubelet tells only how many GPUs are healthy, not which: the count must be right.
    if device.kind is DeviceKind.GPU and device.ordinal >= gpus:
        return replace(device, health=DeviceHealth.UNHEALTHY)
    return device


def _nics(allocatable: dict[str, int]) -> int:
    return total_of(
        allocatable, lambda name: is_rdma(name) and allocatable[name] <= MOST_WHOLE_NICS
    )


def _counted(kind: DeviceKind, stem: str, count: int) -> tuple[DeviceSeen, ...]:
    return tuple(
        DeviceSeen(kind=kind, ordinal=ordinal, name=f"{stem}{ordinal}")
        for ordinal in range(min(count, MOST_DEVICES))
    )


def _catalogued(node: Json) -> tuple[DeviceSeen, ...]:
    # By our own label, or by labels that stand for one wiring alone: where they leave a doubt the
    # catalogue gives nothing, since a wrong pair is worse than an unknown one.
    found = machine_matching(texts_at(node, "metadata", "labels"))
    return found.devices_of(text_at(node, "metadata", "name")) if found else ()


def _annotated(node: Json) -> tuple[DeviceSeen, ...]:
    """Read the annotation; a list with a single entry that is no good is set aside as a whole."""
    entries = _entries(texts_at(node, "metadata", "annotations").get(TOPOLOGY_ANNOTATION, ""))
    # A device that is left out would never be reserved while its plugin hands it out: the mere
    # counts are the better source then.
    devices = tuple(filter(None, map(_device, entries)))
    names = {(device.kind, device.ordinal) for device in devices}
    return devices if len(names) == len(entries) else ()


def _entries(written: str) -> list[object]:
    try:
        entries = json.loads(written or "[]")
    # A nest of brackets fits into an annotation (256 KiB) and exceeds the parser's recursion.
    except (ValueError, RecursionError):
        return []
    return entries if isinstance(entries, list) and len(entries) <= MOST_DEVICES else []


def _device(entry: object) -> DeviceSeen | None:
    """Read one device; None when it is not usable."""
    kind, ordinal = text_at(entry, "kind"), _number(entry, "ordinal", MOST_DEVICES)
    if kind not in KINDS or ordinal < 0:
        return None
    return DeviceSeen(
        kind=DeviceKind(kind),
        ordinal=ordinal,
        name=text_at(entry, "name") or f"{kind}{ordinal}",
        uuid=text_at(entry, "uuid"),
        pci_address=text_at(entry, "pci"),
        switch=_number(entry, "switch"),
        numa=_number(entry, "numa"),
        rail=_number(entry, "rail"),
        nvlink_group=_number(entry, "nvlink"),
    )


def _number(entry: object, key: str, end: int = 2**15) -> int:
    """Give the whole number below `end`; -1 where there is none."""
    found = whole_at(entry, key)
    return -1 if found is None or found not in range(end) else found
