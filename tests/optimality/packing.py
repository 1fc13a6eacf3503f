"""A constraint model of whether gangs can stand together on a fleet, down to the PCIe switch.

Pods choose nodes; on its node a pod takes GPUs and NICs from switches. Under a pair rule the NICs
that a pod takes from a group of switches are at most those that its GPUs there serve: each GPU
serves q or q + 1 of them (q, r = divmod(NICs, GPUs), r of the GPUs serve one more).
"""

from itertools import pairwise
from typing import NamedTuple

from ortools.sat.python import cp_model

from gateway.core.devices.fleet import Fleet
from gateway.core.jobs.request import PodSetRequest, RequestClass
from gateway.core.vocabulary import PairRule

SWITCHES, PER_SWITCH, SWITCHES_PER_NUMA = 4, 2, 2
Cells = list[cp_model.IntVar]
"""Devices taken of each switch of one node."""


class Taken(NamedTuple):
    """What one pod takes of one node."""

    here: cp_model.IntVar
    gpus: Cells
    nics: Cells


def can_stand(fleet: Fleet, gangs: list[RequestClass], seconds: float = 10.0) -> bool | None:
    """Whether all gangs have places at the same time; None when the solver gives up."""
    if not _sums_suffice(fleet, gangs):
        return False
    model = cp_model.CpModel()
    pods: list[tuple[PodSetRequest, list[Taken]]] = []
    for pod_set in (each for gang in gangs for each in gang.pod_sets):
        alike = [_pod(model, fleet, pod_set) for _ in range(pod_set.count)]
        _in_order_of_nodes(model, alike)
        pods += [(pod_set, taken) for taken in alike]
    for row in range(len(fleet)):
        _limit_node(model, fleet, row, [(each, taken[row]) for each, taken in pods])
    _share_levels(model, fleet, gangs, [taken for _, taken in pods])
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = seconds
    solver.parameters.num_workers = 1
    status = solver.solve(model)
    if status == cp_model.UNKNOWN:
        return None
    return status in {cp_model.OPTIMAL, cp_model.FEASIBLE}


def _sums_suffice(fleet: Fleet, gangs: list[RequestClass]) -> bool:
    """Whether the fleet has as many free devices as are asked for; spares most of the solving."""
    for name, masks in (("gpu", fleet.gpu_free), ("rdma", fleet.nic_free)):
        asked = sum(dict(gang.total).get(name, 0) for gang in gangs)
        if asked > sum(mask.bit_count() for mask in masks.tolist()):
            return False
    return True


def _in_order_of_nodes(model: cp_model.CpModel, alike: list[list[Taken]]) -> None:
    """Let pods alike stand in order of nodes; exchanging them makes no difference."""
    rows = [sum(row * taken.here for row, taken in enumerate(pod)) for pod in alike]
    for first, second in pairwise(rows):
        model.add(first <= second)


def _pod(model: cp_model.CpModel, fleet: Fleet, pod_set: PodSetRequest) -> list[Taken]:
    """Let a pod stand on exactly one node, with its devices there."""
    wanted = dict(pod_set.per_pod)
    taken = []
    for _ in range(len(fleet)):
        here = model.new_bool_var("")
        gpus = [model.new_int_var(0, PER_SWITCH, "") for _ in range(SWITCHES)]
        nics = [model.new_int_var(0, PER_SWITCH, "") for _ in range(SWITCHES)]
        model.add(sum(gpus) == wanted.get("gpu", 0) * here)
        model.add(sum(nics) == wanted.get("rdma", 0) * here)
        _pair(model, pod_set, Taken(here, gpus, nics))
        taken.append(Taken(here, gpus, nics))
    model.add_exactly_one(each.here for each in taken)
    return taken


def _pair(model: cp_model.CpModel, pod_set: PodSetRequest, taken: Taken) -> None:
    """Keep each NIC near the GPU it serves."""
    wanted = dict(pod_set.per_pod)
    gpus, nics = wanted.get("gpu", 0), wanted.get("rdma", 0)
    if pod_set.pair not in {PairRule.SWITCH, PairRule.NUMA} or not gpus or not nics:
        return
    width = 1 if pod_set.pair is PairRule.SWITCH else SWITCHES_PER_NUMA
    each, rest = divmod(nics, gpus)
    busier = []
    for start in range(0, SWITCHES, width):
        near_gpus = sum(taken.gpus[start : start + width])
        near_nics = sum(taken.nics[start : start + width])
        more = model.new_int_var(0, gpus, "")
        model.add(more <= near_gpus)
        model.add(near_nics <= each * near_gpus + more)
        busier.append(more)
    model.add(sum(busier) <= rest)


def _limit_node(
    model: cp_model.CpModel, fleet: Fleet, row: int, pods: list[tuple[PodSetRequest, Taken]]
) -> None:
    """Give a node's devices and amounts at most once."""
    for switch in range(SWITCHES):
        bits = 0b11 << switch * PER_SWITCH
        free_gpus = (int(fleet.gpu_free[row]) & bits).bit_count()
        free_nics = (int(fleet.nic_free[row]) & bits).bit_count()
        model.add(sum(taken.gpus[switch] for _, taken in pods) <= free_gpus)
        model.add(sum(taken.nics[switch] for _, taken in pods) <= free_nics)
    for column, name in enumerate(fleet.resources):
        needs = [
            ({**dict(each.per_pod), "pods": 1}.get(name, 0), taken.here) for each, taken in pods
        ]
        model.add(sum(need * here for need, here in needs) <= int(fleet.free[row, column]))


def _share_levels(
    model: cp_model.CpModel, fleet: Fleet, gangs: list[RequestClass], taken: list[list[Taken]]
) -> None:
    """Keep the pods of a set with a required level on nodes of one value of its label."""
    start = 0
    for pod_set in (each for gang in gangs for each in gang.pod_sets):
        pods, start = taken[start : start + pod_set.count], start + pod_set.count
        if not pod_set.level or not pod_set.is_level_required:
            continue
        values = [dict(labels).get(pod_set.level) for labels in fleet.labels]
        chosen = {value: model.new_bool_var("") for value in set(values) if value}
        model.add_exactly_one(chosen.values())
        for pod in pods:
            for value, node in zip(values, pod, strict=True):
                model.add(node.here <= chosen[value] if value else node.here == 0)
