"""Kueue's baseline and large-scale shapes, decided by the engine alone.

Measured is everything between "who waits" and "who starts on which node": order, fair share over a
tree, quota with borrowing, placement on 640 nodes, and what the state needs to follow admissions
and ends. No database, no cluster, no reasons told to people, no preemption. All jobs are enqueued
first; a finished job returns its quota one cycle later. In CPU time of the one thread.
"""

import gc
import time
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from gateway.bootstrap import calm_collector
from gateway.core.admission.deciding import decide
from gateway.core.admission.state import Definitions, State
from gateway.core.admission.types import Policies
from gateway.core.devices.building import fleet_of
from gateway.core.jobs.request import PodSetRequest, RequestClass
from gateway.core.queues.definitions import Cohort, Flavor, Queue, Quota
from gateway.core.queues.tree import Pair
from gateway.core.resources import CPU, amounts
from gateway.core.vocabulary import UNLIMITED
from gateway.core.waiting.table import NewJob
from tests.bench.figures import Figure, median_figure
from tests.builders import GIB, a_node

REPETITIONS = 5
TARGET = 27_000
NOW_US = 1_800_000_000_000_000
PEER = "earlier run, 2 vCPU Xeon: Kueue in process, decisions only"
NODES, NODE_CPU, NODE_MEMORY = 640, 96_000, 256 * GIB
"""As in Kueue's own test with nodes, which has a hundred times the quota."""


class Kind(NamedTuple):
    """Jobs alike in each queue: how many, CPU in millicores, priority."""

    jobs: int
    cpu: int
    priority: int


class Shape(NamedTuple):
    """Cohorts, queues in each, and jobs in each queue."""

    cohorts: int
    queues: int
    kinds: tuple[Kind, ...]


BASELINE = Shape(5, 6, (Kind(350, 1_000, 50), Kind(100, 5_000, 100), Kind(50, 20_000, 200)))
LARGE = Shape(10, 100, (Kind(35, 1_000, 50), Kind(11, 5_000, 100), Kind(4, 20_000, 200)))


def run() -> Iterator[Figure]:
    """Give the figures."""
    yield _figure("decisions.baseline", BASELINE, 5_400)
    yield _figure("decisions.large_scale", LARGE, 6_400)


def _figure(name: str, shape: Shape, peer: int) -> Figure:
    samples = [_pace(shape) for _ in range(REPETITIONS)]
    return median_figure(
        name,
        samples,
        "decisions/s",
        target=TARGET,
        peer="Kueue",
        peer_value=peer,
        peer_source=PEER,
    )


def _pace(shape: Shape) -> float:
    """Give admissions a second until everybody has run."""
    state, jobs = a_state(shape), list(jobs_of(shape))
    state.lines.add(jobs)
    # As a server does it: what waits is no garbage, and looking through it again finds nothing.
    before = gc.get_threshold()
    calm_collector()
    started = time.process_time()
    admitted = run_all(state)
    seconds = time.process_time() - started
    gc.unfreeze()
    gc.set_threshold(*before)
    assert admitted == len(jobs)
    return admitted / seconds


def a_state(shape: Shape) -> State:
    """Give queues of 20 CPUs that may borrow 100 more, on an idle fleet."""
    quota = Quota(flavor="cpu", resource=CPU, nominal=20_000, borrowing_limit=100_000)
    cohorts = tuple(Cohort(name=f"cohort-{number}") for number in range(shape.cohorts))
    queues = tuple(
        Queue(name=f"queue-{number}-{cohort.name}", cohort=cohort.name, quotas=(quota,))
        for cohort in cohorts
        for number in range(shape.queues)
    )
    free = {"cpu": NODE_CPU, "memory": NODE_MEMORY, "pods": 110}
    nodes = [a_node(number, total=free, free=free) for number in range(NODES)]
    state = State(Policies())
    state.move(fleet_of(nodes, {}, is_complete=True), None)
    state.define(Definitions(queues, cohorts, (Flavor(name="cpu"),)))
    state.learn({index: _class_of(kind) for index, kind in enumerate(shape.kinds)})
    return state


def _class_of(kind: Kind) -> RequestClass:
    pods = PodSetRequest(name="Worker", count=1, per_pod=amounts({CPU: kind.cpu}))
    return RequestClass(pod_sets=(pods,))


def jobs_of(shape: Shape) -> Iterator[NewJob]:
    """Give every job, queue after queue."""
    job_id = 0
    for cohort in range(shape.cohorts):
        for queue in range(shape.queues):
            for class_id, kind in enumerate(shape.kinds):
                for _ in range(kind.jobs):
                    job_id += 1
                    name = f"queue-{queue}-cohort-{cohort}"
                    yield NewJob(job_id, 1, name, class_id, "ann", kind.priority, 0, job_id)


def run_all(state: State) -> int:
    """Decide, let what was admitted run for one cycle, and so on; gives how many were admitted."""
    running: list[tuple[str, Mapping[Pair, int]]] = []
    admitted = 0
    while True:
        decided = decide(state, NOW_US, UNLIMITED)
        for queue, charges in running:
            _charge(state, queue, charges, -1)
        running = [(each.queue, each.fit.charges) for each in decided.admitted]
        if not running and not len(state.lines):
            return admitted
        admitted += len(running)
        for each in decided.admitted:
            job_id = int(state.lines.table.job_id[each.slot])
            # As the mirror does when a row says that the job holds what it was given.
            state.lines.remove(job_id)
            state.promised.discard(job_id)
            _charge(state, each.queue, each.fit.charges, 1)


def _charge(state: State, queue: str, charges: Mapping[Pair, int], sign: int) -> None:
    for pair, amount in charges.items():
        state.charge(queue, pair, sign * amount)
