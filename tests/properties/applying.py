"""Carries a plan out on a snapshot, as the database would, and finds what went wrong with it."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from gateway.core.admission import Admit, CyclePlan, Snapshot, Usage
from gateway.core.devices.fleet import Fleet
from gateway.core.jobs.request import PodSetRequest, RequestClass
from gateway.core.resources import plus


def request_of(snapshot: Snapshot, job_id: int) -> RequestClass:
    """Give what a waiting job asks for."""
    waiting = snapshot.waiting
    (row,) = np.flatnonzero(waiting.job_id == job_id)
    return waiting.classes[int(waiting.request_class[row])]


def pods_of(snapshot: Snapshot, admit: Admit) -> Iterator[tuple[PodSetRequest, int, int, int]]:
    """Give (pod set, node row, GPU mask, NIC mask) of each pod."""
    sets = {each.name: each for each in request_of(snapshot, admit.job_id).pod_sets}
    for pod in admit.placements:
        (row,) = np.flatnonzero(snapshot.fleet.node_id == pod.node_id)
        yield sets[pod.pod_set], int(row), pod.gpu_mask, pod.nic_mask


def applied(snapshot: Snapshot, plan: CyclePlan) -> Snapshot:
    """Give the state after a plan; AssertionError where it takes what is not there."""
    fleet = snapshot.fleet
    free, gpus, nics = fleet.free.copy(), fleet.gpu_free.copy(), fleet.nic_free.copy()
    usage = {(use.queue, use.flavor, use.resource): use.amount for use in snapshot.usage}
    for admit in plan.admits:
        for pod_set, row, gpu_mask, nic_mask in pods_of(snapshot, admit):
            assert gpus[row] & gpu_mask == gpu_mask, "a GPU is given twice or is not free"
            assert nics[row] & nic_mask == nic_mask, "a NIC is given twice or is not free"
            gpus[row] &= ~gpu_mask
            nics[row] &= ~nic_mask
            for name, amount in plus(pod_set.per_pod, (("pods", 1),)):
                if name in fleet.resources:
                    free[row, fleet.resources.index(name)] -= amount
        for charge in admit.charges:
            key = (admit.queue, charge.flavor, charge.resource)
            usage[key] = usage.get(key, 0) + charge.amount
    assert ((free >= 0) | (free == fleet.free)).all(), "more is taken than a node has"
    started = {admit.job_id for admit in plan.admits}
    stay = np.array(
        [job not in started for job in snapshot.waiting.job_id.tolist()], dtype=np.bool_
    )
    return replace(
        snapshot,
        usage=tuple(
            Usage(queue=queue, flavor=flavor, resource=resource, amount=amount)
            for (queue, flavor, resource), amount in usage.items()
        ),
        waiting=snapshot.waiting.take(stay),
        fleet=replace(fleet, free=free, gpu_free=gpus, nic_free=nics),
    )


def joined(left: Fleet, right: Fleet) -> Fleet:
    """Give one fleet of both, with equal resources."""
    return Fleet(
        node_id=np.append(left.node_id, right.node_id),
        names=left.names + right.names,
        machine=np.append(left.machine, right.machine + len(left.machines)).astype(np.int32),
        machines=left.machines + right.machines,
        is_available=np.append(left.is_available, right.is_available),
        labels=left.labels + right.labels,
        taints=left.taints + right.taints,
        resources=left.resources,
        total=np.concatenate([left.total, right.total]),
        free=np.concatenate([left.free, right.free]),
        gpu_all=np.append(left.gpu_all, right.gpu_all),
        gpu_free=np.append(left.gpu_free, right.gpu_free),
        nic_all=np.append(left.nic_all, right.nic_all),
        nic_free=np.append(left.nic_free, right.nic_free),
        health=left.health + right.health,
        is_complete=left.is_complete,
    )
