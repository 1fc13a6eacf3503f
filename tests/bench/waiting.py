"""What a million waiting jobs cost: memory, and a cycle in which a hundred of them are new.

Jobs come as a cold start reads them, in pieces; their specs stay in the database. Memory is the
resident size over that of the process before, after a collection. The cycle is measured in CPU time
with nothing left that fits, as it is when a million wait.
"""

import gc
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from gateway.core.admission.passes import plan_pass
from gateway.core.admission.state import Definitions, State
from gateway.core.admission.types import Policies
from gateway.core.jobs.request import PodSetRequest, RequestClass
from gateway.core.queues.definitions import Cohort, Flavor, Queue, Quota
from gateway.core.resources import CPU, amounts
from gateway.core.waiting.table import NewJob
from tests.bench.figures import Figure, median_figure

REPETITIONS = 5
FEW, MANY, NEW = 1_000, 1_000_000, 100
QUEUES, CLASSES, USERS = 40, 50, 100
PIECE = 10_000
NOW_US = 1_800_000_000_000_000
SECOND_US = 1_000_000
KUEUE = "figures of its authors: 585 B a workload and 2.8 kB for its object"


def run() -> Iterator[Figure]:
    """Give the figures; memory in a process of its own for each sample."""
    samples = [_measured() for _ in range(REPETITIONS)]
    yield median_figure(
        "memory.bytes_per_waiting_job",
        [1024 * (after - before) / MANY for before, after in samples],
        "B",
        target=80,
        higher_is_better=False,
        peer="Kueue",
        peer_value=585,
        peer_source=KUEUE,
    )
    yield median_figure(
        "memory.process_mb",
        [after / 1024 for _, after in samples],
        "MB",
        target=200,
        higher_is_better=False,
    )
    yield _growth()


def _growth() -> Figure:
    few, many = a_state(FEW), a_state(MANY)
    samples = [
        _cycle_seconds(many, MANY, turn) / _cycle_seconds(few, FEW, turn)
        for turn in range(REPETITIONS)
    ]
    return median_figure("cycle.growth", samples, "ratio", target=2, higher_is_better=False)


def a_state(count: int) -> State:
    """Give jobs of all queues, classes and users, none of which fits."""
    quota = Quota(flavor="cpu", resource=CPU, nominal=20_000)
    queues = tuple(
        Queue(name=f"queue-{number}", cohort="all", quotas=(quota,)) for number in range(QUEUES)
    )
    state = State(Policies())
    state.define(Definitions(queues, (Cohort(name="all"),), (Flavor(name="cpu"),)))
    state.learn({number: _class_of(number) for number in range(CLASSES)})
    for start in range(0, count, PIECE):
        state.lines.add([a_job(each) for each in range(start, min(start + PIECE, count))])
    # Twice: the first pass tells why they wait, which later ones need not.
    for turn in range(QUEUES * CLASSES // 200 + 1):
        plan_pass(state, 1, NOW_US + turn, count)
    return state


def _class_of(number: int) -> RequestClass:
    per_pod = amounts({CPU: 1_000 * (number + 1)})
    return RequestClass(pod_sets=(PodSetRequest(name="Worker", count=1, per_pod=per_pod),))


def a_job(number: int) -> NewJob:
    """Give the job of a number; ids and instants grow as they do in the database."""
    return NewJob(
        job_id=number + 1,
        version=1,
        queue=f"queue-{number % QUEUES}",
        class_id=number % CLASSES,
        user=f"user-{number % USERS}",
        priority=number % 7,
        rank=0,
        submitted_us=NOW_US - MANY + number,
    )


def _cycle_seconds(state: State, count: int, turn: int) -> float:
    first = count + turn * NEW
    changed = [a_job(number) for number in range(first, first + NEW)]
    gc.collect()
    started = time.process_time()
    state.lines.add(changed)
    plan = plan_pass(state, 2 + turn, NOW_US + SECOND_US * (turn + 1), count)
    assert not plan.admits
    return time.process_time() - started


def _measured() -> tuple[int, int]:
    """Give the resident kilobytes of a fresh process before and after a million jobs came."""
    told = subprocess.run(
        [sys.executable, "-m", "tests.bench.waiting"], check=True, capture_output=True, text=True
    )
    before, after = map(int, told.stdout.split())
    return before, after


def _resident_kilobytes() -> int:
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))


def main() -> None:
    """Load a million jobs and print what the process held before and after, in kilobytes."""
    import gateway.db.mirror_reading  # noqa: F401, PLC0415 - a leader has it loaded as well

    gc.collect()
    before = _resident_kilobytes()
    state = a_state(MANY)
    gc.collect()
    print(before, _resident_kilobytes())
    assert len(state.lines) == MANY


if __name__ == "__main__":
    main()
