"""A fleet that exists on paper only: `2xdgx-h100,1xcpu` becomes nodes with real topologies.

The local and the simulated back end show it as their inventory. It must not know who uses what.
"""

import re
import uuid
from typing import Final

from gateway.backends.base import NodeSeen
from gateway.backends.machine_catalogue import Machine, machine, machine_names
from gateway.core.vocabulary import MACHINE_TYPE_LABEL, DeviceHealth
from gateway.errors import InvalidInput

# A typing error such as 1000000xcpu should be a refusal, not a server without memory.
MOST_NODES: Final = 100_000
_PART = re.compile(r"(?:(?P<count>[0-9]{1,6})x)?(?P<name>[a-z][a-z0-9-]*)")
_UUIDS: Final = uuid.UUID("0f4f2a52-8c55-5b61-8d1c-5f3f0a9c9f10")


def virtual_fleet(description: str) -> list[NodeSeen]:
    """Build the nodes of `COUNTxMACHINE[,COUNTxMACHINE...]`; equal text gives equal nodes.

    Nodes are named MACHINE-0, MACHINE-1, ...; a part without a count is one node. Raises
    InvalidInput for text of another form, an unknown machine type or more than MOST_NODES nodes.
    """
    counts: dict[str, int] = {}
    for part in description.split(","):
        count, name = _read_part(part.strip(), description)
        counts[name] = counts.get(name, 0) + count
    if sum(counts.values()) > MOST_NODES:
        raise InvalidInput(
            f"a virtual fleet has at most {MOST_NODES} nodes",
            value=description,
            hint="ask for fewer nodes",
        )
    return [_node(machine(name), index) for name, count in counts.items() for index in range(count)]


def _read_part(part: str, description: str) -> tuple[int, str]:
    match = _PART.fullmatch(part)
    count = int(match["count"] or 1) if match else 0
    if match is None or count == 0:
        raise InvalidInput(
            f"{part!r} in the fleet {description!r} is not COUNTxMACHINE",
            value=part,
            allowed=machine_names(),
            hint="write for example 2xdgx-h100 or 2xdgx-h100,1xcpu",
        )
    return count, machine(match["name"]).name


def _node(kind: Machine, index: int) -> NodeSeen:
    name = f"{kind.name}-{index}"
    return NodeSeen(
        name=name,
        uid=str(uuid.uuid5(_UUIDS, name)),
        machine_type=kind.name,
        health=DeviceHealth.HEALTHY,
        labels={
            **kind.labels,
            "kubernetes.io/hostname": name,
            MACHINE_TYPE_LABEL: kind.name,
        },
        total=kind.total,
        devices=kind.devices_of(name),
    )
