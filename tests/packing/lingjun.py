"""Parts of the Lingjun cluster, in use and asked for by ITP gangs; all of it drawn from a seed.

A part is some of its top-of-rack switches with all hosts behind them, at least 64 of eight GPUs.
Gangs come with the sizes of the ITP jobs: up to eight GPUs in one pod, more in pods of eight that
would rather be behind one switch.
"""

import random
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from gateway.core.admission import Snapshot
from gateway.core.devices.fleet import Fleet
from gateway.core.devices.rows import NodeRow
from gateway.core.jobs.request import PodSetRequest, RequestClass
from gateway.core.placing.room import PodPlace, Room
from gateway.core.policies.placement import pack
from gateway.core.resources import amounts
from gateway.core.vocabulary import DeviceKind, PairRule
from tests.builders import a_device, a_fleet, a_node
from tests.optimality.instances import in_line
from tests.packing.traces import itp_gang_sizes, lingjun_hosts

HOSTS, GPUS = 64, 8
ASKED = 1.3
"""GPUs that are asked for, for each free one."""
SWITCH = "network.example.com/switch"


def an_instance(seed: int) -> Snapshot:
    """Give a part of the cluster after some use, and gangs in line for more than is free."""
    draw = random.Random(seed)  # noqa: S311 - an instance, not a secret
    fleet = used_for_a_while(draw, idle_part(draw))
    free = int(np.bitwise_count(fleet.gpu_free).sum())
    return in_line(list(gangs(draw, ASKED * free)), fleet)


def idle_part(draw: random.Random) -> Fleet:
    """Give the hosts behind enough switches, chosen at random."""
    behind: dict[str, int] = {}
    for host in lingjun_hosts():
        behind[host.switch] = behind.get(host.switch, 0) + 1
    switches = sorted(behind)
    draw.shuffle(switches)
    nodes: list[NodeRow] = []
    for switch in switches:
        if len(nodes) >= HOSTS:
            break
        first = len(nodes)
        labels = ((SWITCH, switch),)
        numbers = range(first, first + behind[switch])
        nodes += [a_node(number, name=f"host-{number:03d}", labels=labels) for number in numbers]
    gpus = [a_device(node.node_id, DeviceKind.GPU, i) for node in nodes for i in range(GPUS)]
    return a_fleet(nodes, gpus)


def used_for_a_while(draw: random.Random, fleet: Fleet) -> Fleet:
    """Give the fleet with gangs on it, after some of those that filled it have ended."""
    room, everywhere = Room(fleet), np.ones(len(fleet), dtype=np.bool_)
    running: list[list[PodPlace]] = []
    for gang in gangs(draw, len(fleet) * GPUS):
        found = pack(room, gang.pod_sets, {"Worker": everywhere})
        running += [] if found is None else [found["Worker"]]
    ended = draw.choice([0.2, 0.4, 0.6, 1.0])
    busy = np.zeros(len(fleet), dtype=np.int64)
    for places in running:
        if draw.random() >= ended:
            for place in places:
                busy[place.row] |= place.gpu_mask
    return replace(fleet, gpu_free=fleet.gpu_all & ~busy)


def gangs(draw: random.Random, gpus: float) -> Iterator[RequestClass]:
    """Give gangs of drawn sizes until so many GPUs are asked for."""
    sizes = itp_gang_sizes()
    asked = 0
    while asked < gpus:
        size = sizes[draw.randrange(len(sizes))]
        asked += size
        yield a_gang_of(size)


def a_gang_of(gpus: int) -> RequestClass:
    """Give a gang of so many GPUs."""
    pods = max(1, gpus // GPUS)
    worker = PodSetRequest(
        name="Worker",
        count=pods,
        per_pod=amounts({"cpu": 1000, "gpu": gpus // pods}),
        pair=PairRule.NONE,
        level=SWITCH if pods > 1 else "",
        is_level_required=False,
    )
    return RequestClass(pod_sets=(worker,))
