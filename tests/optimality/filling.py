"""What a fleet can be filled with by gangs in line, with nodes counted by patterns.

For gangs without pair rules a node is its number of free GPUs, and what stands on it a partition of
at most that number. So the model is exact and small, however many nodes there are.
"""

from collections import Counter
from collections.abc import Iterator
from functools import cache

from ortools.sat.python import cp_model

from gateway.core.devices.fleet import Fleet
from gateway.core.jobs.request import RequestClass
from gateway.core.resources import GPU

LARGEST = 8


def filled_in_order(fleet: Fleet, gangs: list[RequestClass]) -> int:
    """Give the GPUs taken when each gang starts that can stand with those started before it."""
    started: list[RequestClass] = []
    for gang in gangs:
        if can_stand(fleet, [*started, gang]):
            started.append(gang)
    return sum(gpus_of(gang) for gang in started)


def can_stand(fleet: Fleet, gangs: list[RequestClass]) -> bool:
    """Whether all these gangs have places at the same time."""
    free = Counter(mask.bit_count() for mask in fleet.gpu_free.tolist())
    if sum(map(gpus_of, gangs)) > sum(gpus * nodes for gpus, nodes in free.items()):
        return False
    model = cp_model.CpModel()
    patterns: list[tuple[tuple[int, ...], cp_model.IntVar]] = []
    for gpus, nodes in sorted(free.items()):
        kind = [(pattern, model.new_int_var(0, nodes, "")) for pattern in partitions(gpus)]
        model.add(sum(var for _, var in kind) <= nodes)
        patterns += kind
    for size, pods in pods_by_size(gangs).items():
        model.add(sum(pattern.count(size) * var for pattern, var in patterns) >= pods)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    status = solver.solve(model)
    assert status in {cp_model.OPTIMAL, cp_model.FEASIBLE, cp_model.INFEASIBLE}
    return status != cp_model.INFEASIBLE


def pods_by_size(gangs: list[RequestClass]) -> Counter[int]:
    """Give how many pods of each number of GPUs the gangs have."""
    pods: Counter[int] = Counter()
    for gang in gangs:
        for pod_set in gang.pod_sets:
            pods[dict(pod_set.per_pod)[GPU]] += pod_set.count
    return pods


def gpus_of(gang: RequestClass) -> int:
    """Give the GPUs of a gang."""
    return dict(gang.total)[GPU]


@cache
def partitions(free: int) -> tuple[tuple[int, ...], ...]:
    """Give the ways to use up to so many GPUs of a node by pods that leave no room for more."""
    return tuple(pattern for pattern in _partitions(free, LARGEST) if sum(pattern) == free)


def _partitions(free: int, largest: int) -> Iterator[tuple[int, ...]]:
    """Give the ways to split a number into pods, larger ones first."""
    if not free:
        yield ()
    for size in range(min(free, largest), 0, -1):
        for rest in _partitions(free - size, size):
            yield (size, *rest)
