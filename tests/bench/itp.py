"""Filling 5,000 nodes of 8 GPUs and 8 NICs from 100,000 waiting gangs of real sizes, 40 queues.

Measured is one pass of the engine: fair order over the queues, quota, placement of whole gangs with
their GPUs and NICs, and the plan as it would be committed; no database, no reasons. A gang above 8
GPUs is a Master and Workers on whole nodes. Sizes are drawn from the ITP job lists (see data/). In
processor time of the one thread that decides.
"""

import csv
import gc
import random
import time
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

from gateway.core.admission.deciding import decide
from gateway.core.admission.granting import admits_of
from gateway.core.admission.state import Definitions, State
from gateway.core.admission.types import Policies
from gateway.core.devices.warm import FleetState
from gateway.core.jobs.request import PodSetRequest, RequestClass
from gateway.core.queues.definitions import Cohort, Flavor, Queue
from gateway.core.vocabulary import UNLIMITED
from gateway.core.waiting.table import NewJob
from tests.bench._fleets import idle_fleet
from tests.bench.figures import Figure, median_figure, repetitions
from tests.builders import a_pod_set

SIZES = Path(__file__).parent / "data" / "itp-2021-sizes.csv"
GANGS, QUEUES, NODE_GPUS = 100_000, 40, 8
FLEET_GPUS = 40_000
NOW_US = 1_800_000_000_000_000
SOURCE = "sizes: microsoft/elasticflow-traces, ten ITP clusters, 69,351 jobs, 2021 (MIT)"


class Filled(NamedTuple):
    """What one pass over an idle fleet admitted."""

    gangs: int
    gpus: int
    cpu_seconds: float


def run() -> Iterator[Figure]:
    """Give the figures; each repetition has another order of arrival."""
    samples = [filled(GANGS, seed) for seed in range(repetitions(5))]
    yield from figures_of(samples)


def figures_of(samples: list[Filled]) -> Iterator[Figure]:
    """Give gangs and GPUs a second, and how much of the fleet is taken at the end."""
    pace = [each.gangs / each.cpu_seconds for each in samples]
    yield median_figure("gangs.fill_itp", pace, "gangs/s", peer_source=SOURCE)
    gpus = [each.gpus / each.cpu_seconds for each in samples]
    yield median_figure("gangs.fill_itp_gpus", gpus, "GPUs/s", peer_source=SOURCE)
    share = [each.gpus / FLEET_GPUS for each in samples]
    yield median_figure("gangs.fill_itp_taken", share, "of the GPUs", peer_source=SOURCE)


def filled(gangs: int, seed: int) -> Filled:
    """Let so many gangs wait, fill the idle fleet in one pass, and count."""
    state = a_state()
    sizes = list(size_counts())
    state.learn({number: request_of(size) for number, size in enumerate(sizes)})
    state.lines.add(_jobs(gangs, seed))
    gc.collect()
    started = time.process_time()
    decided = decide(state, NOW_US, UNLIMITED)
    admits = admits_of(state, decided)
    seconds = time.process_time() - started
    return Filled(len(admits), sum(sizes[each.class_index] for each in admits), seconds)


@cache
def size_counts() -> Mapping[int, int]:
    """Give how many jobs of each size the lists hold."""
    lines = SIZES.read_text(encoding="utf-8").splitlines()
    rows = csv.DictReader(line for line in lines if not line.startswith("#"))
    return {int(row["gpus"]): int(row["jobs"]) for row in rows}


def request_of(gpus: int) -> RequestClass:
    """Give the gang of a size: one pod up to a node's GPUs, else whole nodes."""
    pod = a_pod_set(name="Master", gpu=min(gpus, NODE_GPUS), rdma=min(gpus, NODE_GPUS))
    sets: tuple[PodSetRequest, ...] = (pod,)
    if gpus > NODE_GPUS:
        count = gpus // NODE_GPUS - 1
        sets = (pod, a_pod_set(name="Worker", count=count, gpu=NODE_GPUS, rdma=NODE_GPUS))
    return RequestClass(pod_sets=sets)


def a_state() -> State:
    """Give 40 queues of one cohort without limits, on an idle fleet."""
    rows, fleet = list(idle_fleet()), FleetState()
    fleet.apply([node for node, _ in rows], [each for _, devices in rows for each in devices])
    state = State(Policies())
    state.move(fleet.change(is_complete=True).fleet, None)
    queues = tuple(Queue(name=f"queue-{number}", cohort="all") for number in range(QUEUES))
    state.define(Definitions(queues, (Cohort(name="all"),), (Flavor(name="h100"),)))
    return state


def _jobs(count: int, seed: int) -> list[NewJob]:
    draw = random.Random(seed)  # noqa: S311 - a workload, not a secret
    counts = list(size_counts().values())
    classes = draw.choices(range(len(counts)), counts, k=count)
    return [
        NewJob(number, 1, f"queue-{draw.randrange(QUEUES)}", class_id, "ann", 0, 0, number)
        for number, class_id in enumerate(classes, 1)
    ]
