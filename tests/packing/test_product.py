"""The product puts whole-GPU pods of openb on the very nodes on which the harness puts them."""

import random
from collections import Counter

import numpy as np
import pytest

from gateway.core.devices.fleet import Bool, Fleet
from gateway.core.jobs.request import PodSetRequest
from gateway.core.placing.fragments import WHOLE_GPU
from gateway.core.placing.room import Room
from gateway.core.placing.typical import MOST_TYPICAL, Asked, Typical
from gateway.core.policies.placement import fragmentation
from gateway.core.resources import amounts
from gateway.core.vocabulary import DeviceKind
from tests.builders import a_device, a_fleet, a_node
from tests.packing.openb import Filling
from tests.packing.traces import OpenbNode, OpenbPod, openb_nodes, openb_pods

PODS = 1_500
EVERY = 8
"""One node of so many is taken, so that the fleet fills up in a short test."""


def some_nodes() -> tuple[OpenbNode, ...]:
    return openb_nodes()[::EVERY]


def whole_pods(trace: str) -> list[OpenbPod]:
    """Give pods of the most frequent kinds, each share grown to a whole GPU."""
    grown = [pod._replace(units=WHOLE_GPU if pod.gpus else 0) for pod in openb_pods(trace)]
    known = {pod for pod, _ in Counter(grown).most_common(MOST_TYPICAL)}
    return [pod for pod in grown if pod in known]


def as_fleet() -> Fleet:
    """Give the same nodes to the product, as many pods each as may be."""
    rows = [
        a_node(number, name=f"node-{number:04d}", total=has, free=has)
        for number, node in enumerate(some_nodes())
        for has in [{"cpu": node.cpu, "memory": node.memory, "pods": 10_000}]
    ]
    gpus = [
        a_device(number, DeviceKind.GPU, ordinal)
        for number, node in enumerate(some_nodes())
        for ordinal in range(node.gpus)
    ]
    return a_fleet(rows, gpus)


def as_pod_set(pod: OpenbPod) -> PodSetRequest:
    wanted = {"cpu": pod.cpu, "memory": pod.memory, "gpu": pod.gpus}
    return PodSetRequest(name="Worker", count=1, per_pod=amounts(wanted))


def mask_of(pod: OpenbPod) -> Bool:
    return np.array([pod.may_use(node.model) for node in some_nodes()], dtype=np.bool_)


@pytest.mark.parametrize("trace", ["default", "gpuspec33"])
def test_the_product_chooses_what_the_harness_chooses(trace: str) -> None:
    pods = whole_pods(trace)
    harness = Filling(trace, "fragmentation", 0, nodes=some_nodes(), pods=pods)
    kinds = {pod: (as_pod_set(pod), mask_of(pod)) for pod in set(pods)}
    room = Room(as_fleet())
    counted = Counter(pods).items()
    room.typical = Typical(room, [Asked(*kinds[pod], weight) for pod, weight in counted])
    draw = random.Random(1)  # noqa: S311 - a sample, not a secret
    refused = 0
    for _ in range(PODS):
        pod = pods[draw.randrange(len(pods))]
        pod_set, mask = kinds[pod]
        places = fragmentation(room, (pod_set,), {"Worker": mask})
        is_placed = harness.place(pod)
        refused += not is_placed
        assert (places is not None) == is_placed
        if places is not None:
            assert places["Worker"][0].row == harness.changed[-1]
    assert refused > PODS / 20
