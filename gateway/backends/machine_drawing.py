"""Draws a machine type for people: what hangs where, and the matrix of distances. 80 columns.

Text only, without colour: documents and terminals show the same.
"""

import textwrap
from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from typing import Final

from gateway.backends.base import DeviceSeen
from gateway.backends.machine_types import Machine
from gateway.core.devices.distances import gpu_links, nic_distances
from gateway.core.resources.words import counted
from gateway.core.vocabulary import DeviceKind

WIDTH: Final = 80
CELL: Final = 6
PER_ROW: Final = (WIDTH - CELL) // CELL


def drawing(kind: Machine) -> tuple[str, ...]:
    """Give the lines: head, map by NUMA node and switch, both matrices."""
    return (*_head(kind), *_map(kind), *_gpu_matrix(kind), *_nic_matrix(kind))


def count_of(kind: Machine, field: str) -> int:
    """Give how many groups of this field are known: `switch`, `numa`, `rail`, `nvlink_group`."""
    return len({getattr(device, field) for device in kind.devices} - {-1})


def _head(kind: Machine) -> Iterator[str]:
    counts = (
        counted(len(kind.topology.gpus), "GPU"),
        counted(len(kind.topology.nics), "NIC"),
        f"{count_of(kind, 'switch') or 'no known'} switches",
        f"{count_of(kind, 'numa') or 'no known'} NUMA nodes",
    )
    yield f"{kind.name}: {', '.join(counts)}"
    if kind.topology.is_c2c:
        yield "GPUs are reached over C2C: nearness is judged by NUMA node"


def _map(kind: Machine) -> Iterator[str]:
    """Give the tree; what nobody placed comes last."""
    for numa, inside in _grouped(kind.devices, attrgetter("numa")):
        yield f"NUMA node {numa}" if numa >= 0 else "NUMA node not known"
        branches = [devices for _, devices in _grouped(inside, attrgetter("switch"))]
        for devices in branches:
            yield from _branch(devices, is_end=devices is branches[-1])


def _branch(devices: Sequence[DeviceSeen], *, is_end: bool) -> Iterator[str]:
    switch = devices[0].switch
    label = f"switch {switch}" if switch >= 0 else "no switch"
    stem, under = ("└─ ", "   ") if is_end else ("├─ ", "│  ")
    words = "  ".join(map(_cell, devices))
    yield from textwrap.wrap(
        words,
        WIDTH,
        initial_indent=f"{stem}{label:<11}",
        subsequent_indent=f"{under}{'':<11}",
        break_on_hyphens=False,
    )


def _cell(device: DeviceSeen) -> str:
    name = f"GPU{device.ordinal}" if device.kind is DeviceKind.GPU else device.name
    # One word for textwrap: a name and its address must not part.
    return f"{name}({device.pci_address.removeprefix('0000:')})" if device.pci_address else name


def _gpu_matrix(kind: Machine) -> Iterator[str]:
    # One GPU has no other to be near to.
    if len(kind.topology.gpus) > 1:
        yield from _matrix("GPU", gpu_links(kind.topology))


def _nic_matrix(kind: Machine) -> Iterator[str]:
    if not (kind.topology.gpus and kind.topology.nics):
        return
    yield from _matrix("NIC", nic_distances(kind.topology))
    names = (f"NIC{nic.ordinal}={nic.name}" for nic in kind.named(DeviceKind.RDMA))
    yield ""
    yield from textwrap.wrap("  ".join(names), WIDTH, break_on_hyphens=False)


def _matrix(columns: str, rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Give a table, in pieces where it has more columns than a line holds."""
    for first in range(0, len(rows[0]), PER_ROW):
        shown = range(len(rows[0]))[first : first + PER_ROW]
        yield ""
        yield _line("", [f"{columns}{place}" for place in shown])
        for gpu, row in enumerate(rows):
            yield _line(f"GPU{gpu}", [row[place] for place in shown])


def _line(title: str, cells: Sequence[str]) -> str:
    return (f"{title:<{CELL}}" + "".join(f"{each:<{CELL}}" for each in cells)).rstrip()


def _grouped(
    devices: Sequence[DeviceSeen], key: Callable[[DeviceSeen], int]
) -> list[tuple[int, list[DeviceSeen]]]:
    groups: dict[int, list[DeviceSeen]] = {}
    for device in devices:
        groups.setdefault(key(device), []).append(device)
    # The unknown is -1, which would sort first.
    return sorted(groups.items(), key=lambda group: (group[0] < 0, group[0]))
