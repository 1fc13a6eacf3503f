"""The best there is for gangs behind switches, by models for the OR-Tools solver.

Gangs ask for a power of two of GPUs, in pods of one host at most. Then pods smaller than a host
need as few whole free hosts as any packing of them into the used ones leaves over, and only pods
of whole hosts care for switches. So the model counts hosts, and is exact.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ortools.sat.python import cp_model

from gateway.core.admission import CyclePlan, Snapshot
from gateway.core.devices.fleet import Fleet
from gateway.core.jobs.request import RequestClass
from gateway.core.resources import GPU
from tests.optimality.filling import can_stand, gpus_of
from tests.packing.lingjun import GPUS, SWITCH


class Outcome(NamedTuple):
    """What a plan made of an instance, and what could have been made of it."""

    gpus: int
    best_gpus: int
    """Given away when each gang starts that can stand with those started before it."""
    wide: int
    """Started gangs of more than one host."""
    too_wide: int
    """Those behind more switches than in a solution of fewest switches in all."""

    @property
    def shortfall(self) -> float:
        """What part of the GPUs that can be given away is not."""
        return 1 - self.gpus / self.best_gpus if self.best_gpus else 0.0


def judged(snapshot: Snapshot, plan: CyclePlan) -> Outcome:
    """Compare a plan with the best."""
    waiting = snapshot.waiting
    asked = [waiting.classes[index] for index in waiting.request_class.tolist()]
    started = {admit.job_id for admit in plan.admits}
    given = [
        gang for job, gang in zip(waiting.job_id.tolist(), asked, strict=True) if job in started
    ]
    used = switches_used(snapshot.fleet, plan)
    return Outcome(
        gpus=sum(map(gpus_of, given)),
        best_gpus=sum(map(gpus_of, filled_in_order(snapshot.fleet, asked))),
        wide=len(used),
        too_wide=_too_wide(snapshot.fleet, given, used) if used else 0,
    )


def filled_in_order(fleet: Fleet, gangs: Sequence[RequestClass]) -> list[RequestClass]:
    """Give the gangs that start when each starts that can stand with those started before it."""
    started: list[RequestClass] = []
    refused: set[RequestClass] = set()
    packing = Packing(fleet)
    for gang in gangs:
        # Whoever could not stand with fewer beside it cannot with more.
        if gang in refused:
            continue
        if packing.add(gang) or can_stand(fleet, [*started, gang]):
            started.append(gang)
        else:
            refused.add(gang)
    return started


class Packing:
    """Greedy packing of whole gangs; a yes is certain, a no is for the solver to judge."""

    def __init__(self, fleet: Fleet) -> None:
        """Start with what is free."""
        self.free = [mask.bit_count() for mask in fleet.gpu_free.tolist()]
        self.sizes: Counter[int] = Counter()

    def add(self, gang: RequestClass) -> bool:
        """Take a gang in when all of them still find room, the largest pods first."""
        (pods,) = gang.pod_sets
        sizes = self.sizes + Counter({dict(pods.per_pod)[GPU]: pods.count})
        fits = _whole_hosts_needed(self.free, sizes, len(self.free)) is not None
        if fits:
            self.sizes = sizes
        return fits


def _whole_hosts_needed(free: Sequence[int], sizes: Mapping[int, int], whole: int) -> int | None:
    """Give how many wholly free hosts pods need beside the used ones; None when there are less."""
    # Powers of two: a larger pod first never stands in the way, and best fit wastes nothing.
    room = sorted(each for each in free if each < GPUS)
    idle = min(whole, len(free) - len(room))
    opened = 0
    for size in sorted(sizes, reverse=True):
        missing = sizes[size]
        for index, each in enumerate(room):
            taken = min(missing, each // size)
            room[index] -= taken * size
            missing -= taken
        per_host = GPUS // size
        hosts = -(-missing // per_host)
        opened += hosts
        if opened > idle:
            return None
        room += [GPUS] * hosts
        if hosts:
            for index in range(len(room) - hosts, len(room)):
                taken = min(missing, per_host)
                room[index] -= taken * size
                missing -= taken
    return opened


def switches_used(fleet: Fleet, plan: CyclePlan) -> dict[int, int]:
    """Give the number of switches by job, of gangs with several pods."""
    switch_of = _switch_of(fleet)
    return {
        admit.job_id: len({switch_of[pod.node_id] for pod in admit.placements})
        for admit in plan.admits
        if len(admit.placements) > 1
    }


def _switch_of(fleet: Fleet) -> dict[int, str]:
    labels = (dict(pairs)[SWITCH] for pairs in fleet.labels)
    return dict(zip(fleet.node_id.tolist(), labels, strict=True))


def _too_wide(fleet: Fleet, given: list[RequestClass], used: dict[int, int]) -> int:
    """Give how many gangs stand behind more switches than in the best solution nearest to this."""
    pods = [gang.pod_sets[0].count for gang in given if gang.pod_sets[0].count > 1]
    actual = list(used.values())
    best, _ = _solved(fleet, given, pods, None)
    if best == sum(actual):
        return 0
    return _solved(fleet, given, pods, (best, actual))[1]


def _solved(
    fleet: Fleet,
    given: list[RequestClass],
    pods: list[int],
    known: tuple[int, list[int]] | None,
) -> tuple[int, int]:
    """Give the fewest switches in all; and when those are known, the fewest gangs with more."""
    switch_of = _switch_of(fleet)
    idle = Counter(
        switch_of[node]
        for node, mask in zip(fleet.node_id.tolist(), fleet.gpu_free.tolist(), strict=True)
        if mask.bit_count() == GPUS
    )
    model = cp_model.CpModel()
    touches = [{switch: model.new_bool_var("") for switch in idle} for _ in pods]
    hosts = [{switch: model.new_int_var(0, count, "") for switch in idle} for count in pods]
    for count, mine, where in zip(pods, hosts, touches, strict=True):
        model.add(sum(mine.values()) == count)
        for switch, number in mine.items():
            model.add(number <= count * where[switch])
    others = {switch: model.new_int_var(0, count, "") for switch, count in idle.items()}
    for switch, count in idle.items():
        model.add(sum(mine[switch] for mine in hosts) + others[switch] <= count)
    model.add(sum(others.values()) >= _hosts_of_small(fleet, given))
    total = sum(each for where in touches for each in where.values())
    if known is None:
        model.minimize(total)
    else:
        model.add(total == known[0])
        wider = [model.new_bool_var("") for _ in pods]
        for more, where, actual in zip(wider, touches, known[1], strict=True):
            model.add(sum(where.values()) >= actual * (1 - more))
        model.minimize(sum(wider))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    assert solver.solve(model) == cp_model.OPTIMAL
    return round(solver.objective_value), round(solver.objective_value)


def _hosts_of_small(fleet: Fleet, given: list[RequestClass]) -> int:
    """Give the whole free hosts that gangs of one pod need at least."""
    singles = Counter(gpus_of(gang) for gang in given if gang.pod_sets[0].count == 1)
    free = [mask.bit_count() for mask in fleet.gpu_free.tolist()]
    needed = _whole_hosts_needed(free, singles, len(free))
    assert needed is not None
    return needed
