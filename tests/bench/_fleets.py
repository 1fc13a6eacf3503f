"""Large fleets and many shapes of gangs for benchmarks; the same ones at every run."""

import random
from collections.abc import Iterator
from dataclasses import replace

from gateway.core.devices.rows import DeviceRow, NodeRow
from gateway.core.jobs.request import PodSetRequest
from gateway.core.placing.screening import Asked
from gateway.core.queues.definitions import Flavor
from gateway.core.resources.node_rules import Requirement
from tests.builders import GIB, a_node, a_pod_set, devices_of

NODES, RACK_SIZE = 5_000, 20
RACK = "topology.example.com/rack"
ZONES = 5
FLAVOR = Flavor(name="h100", node_labels=(("gpu", "h100"),))
Row = tuple[NodeRow, list[DeviceRow]]


def a_rack_node(number: int, draw: random.Random) -> NodeRow:
    """Give an idle node with the labels that a cloud puts on one."""
    labels = {
        "gpu": "h100",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/hostname": f"node-{number:04d}",
        "kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": "p5.48xlarge",
        "team": draw.choice(["red", "green", "blue"]),
        RACK: f"rack-{number // RACK_SIZE:03d}",
        "topology.kubernetes.io/zone": f"zone-{number // RACK_SIZE % ZONES}",
    }
    return a_node(number, name=f"node-{number:04d}", labels=tuple(sorted(labels.items())))


def idle_fleet() -> Iterator[Row]:
    """Give 5,000 nodes of 8 GPUs and 8 NICs in 250 racks."""
    draw = random.Random(1)  # noqa: S311 - a fleet, not a secret
    for number in range(NODES):
        yield a_rack_node(number, draw), devices_of(number)


def filled(row: Row, draw: random.Random) -> Row:
    """Give the node with its GPUs held, and what the gangs on it leave of the rest."""
    node, devices = row
    free = {"cpu": 4_000 * draw.randint(0, 6), "memory": 32 * GIB * draw.randint(0, 6), "pods": 90}
    held = [device._replace(units_free=0) for device in devices]
    return node._replace(free=free), held


def released(row: Row, draw: random.Random) -> Row:
    """Give the node with some of its GPUs and NICs free again."""
    node, devices = row
    count = draw.choice([1, 2, 4, 8])
    free = {"cpu": 24_000 * count, "memory": 256 * GIB * count, "pods": 100}
    return node._replace(free=free), [
        device._replace(units_free=100 if device.ordinal < count else 0) for device in devices
    ]


def a_shape(draw: random.Random) -> PodSetRequest:
    """Give a pod set that asks for GPUs, or for more CPU and memory than a full node has left."""
    gpus = draw.choice([0, 1, 1, 2, 4, 8, 8, 8])
    shape = a_pod_set(
        count=draw.choice([1, 2, 4, 8, 16]),
        gpu=gpus,
        rdma=draw.choice([0, gpus]),
        cpu=draw.randint(25_000, 90_000) if not gpus else draw.randint(1_000, 16_000) * gpus,
        memory=draw.randint(8, 200) * GIB,
    )
    zone = f"zone-{draw.randrange(ZONES)}"
    teams = Requirement(key="team", operator="In", values=tuple(draw.sample(TEAMS, 2)))
    return replace(
        shape,
        node_selector=(("topology.kubernetes.io/zone", zone),) if draw.random() < 0.5 else (),
        affinity=((teams,),) if draw.random() < 0.3 else (),
        level=RACK if shape.count > 1 and draw.random() < 0.5 else "",
    )


TEAMS = ["red", "green", "blue"]


def distinct_gangs(count: int) -> list[Asked]:
    """Give gangs of one pod set, no two alike."""
    draw = random.Random(2)  # noqa: S311 - gangs, not secrets
    shapes: dict[PodSetRequest, None] = {}
    while len(shapes) < count:
        shapes[a_shape(draw)] = None
    return [((shape,), {shape.name: FLAVOR}) for shape in shapes]
