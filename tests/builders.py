"""Valid objects of the core in one line each; a test overrides only what it is about."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from gateway.core.admission import Snapshot, Usage
from gateway.core.devices.building import devices_of_node, fleet_of
from gateway.core.devices.fleet import Fleet
from gateway.core.devices.rows import DeviceRow, NodeRow
from gateway.core.jobs.columns import WaitingJobs
from gateway.core.jobs.request import PodSetRequest, RequestClass
from gateway.core.queues.definitions import Cohort, Flavor, Queue, Quota
from gateway.core.resources import amounts
from gateway.core.resources.node_rules import Taint
from gateway.core.vocabulary import UNLIMITED, DeviceHealth, DeviceKind, PairRule

GIB = 2**30
DEFAULT_FLAVOR = Flavor(name="default")


def a_node(node_id: int, **changes: object) -> NodeRow:
    """Give a healthy node with plenty of CPU and memory."""
    values: dict[str, object] = {
        "node_id": node_id,
        "name": f"node-{node_id:02d}",
        "machine_type": "test-8x8",
        "health": DeviceHealth.HEALTHY,
        "is_present": True,
        "labels": (),
        "taints": (),
        "total": {"cpu": 192_000, "memory": 2048 * GIB, "pods": 110},
        "free": {"cpu": 192_000, "memory": 2048 * GIB, "pods": 110},
    }
    return NodeRow(**{**values, **changes})  # type: ignore[arg-type]  # fields by name


def a_device(node_id: int, kind: DeviceKind, ordinal: int, **changes: object) -> DeviceRow:
    """Give a free device of a machine with four switches of two and two NUMA nodes."""
    values: dict[str, object] = {
        "device_id": node_id * 1000 + (500 if kind is DeviceKind.RDMA else 0) + ordinal,
        "node_id": node_id,
        "kind": kind,
        "ordinal": ordinal,
        "switch": ordinal // 2,
        "numa": ordinal // 4,
        "rail": ordinal if kind is DeviceKind.RDMA else -1,
        "nvlink_group": 0 if kind is DeviceKind.GPU else -1,
        "health": DeviceHealth.HEALTHY,
        "is_present": True,
        "is_foreign": False,
        "units_total": 100,
        "units_free": 100,
    }
    return DeviceRow(**{**values, **changes})  # type: ignore[arg-type]  # fields by name


def devices_of(node_id: int, gpus: int = 8, nics: int = 8) -> list[DeviceRow]:
    """Give a node's devices, all free."""
    return [a_device(node_id, DeviceKind.GPU, i) for i in range(gpus)] + [
        a_device(node_id, DeviceKind.RDMA, i) for i in range(nics)
    ]


def a_fleet(
    nodes: Sequence[NodeRow] = (), devices: Iterable[DeviceRow] = (), *, complete: bool = True
) -> Fleet:
    """Give the fleet of these rows; two full nodes when nothing is said."""
    if not nodes:
        nodes = (a_node(1), a_node(2))
        devices = devices or [device for node in nodes for device in devices_of(node.node_id)]
    by_node: dict[int, list[DeviceRow]] = {}
    for device in devices:
        by_node.setdefault(device.node_id, []).append(device)
    held = {node_id: devices_of_node(rows) for node_id, rows in by_node.items()}
    return fleet_of(nodes, held, is_complete=complete)


def a_pod_set(name: str = "Worker", count: int = 1, **asks: int) -> PodSetRequest:
    """Give a pod set that asks for one CPU and what is named: gpu, rdma, cpu, memory."""
    return PodSetRequest(name=name, count=count, per_pod=amounts({"cpu": 1000, **asks}))


def a_gang(
    gpu: int = 1, rdma: int = 0, pods: int = 1, pair: PairRule = PairRule.NODE
) -> RequestClass:
    """Give a gang of like pods under a required pair rule."""
    pod_set = PodSetRequest(
        name="Worker",
        count=pods,
        per_pod=amounts({"cpu": 1000, "gpu": gpu, "rdma": rdma}),
        pair=pair,
    )
    return RequestClass(pod_sets=(pod_set,))


def a_quota(nominal: int, borrowing: int = UNLIMITED, lending: int = UNLIMITED) -> Quota:
    """Give a GPU quota of the default flavor."""
    return Quota(
        flavor="default",
        resource="gpu",
        nominal=nominal,
        borrowing_limit=borrowing,
        lending_limit=lending,
    )


def a_waiting_list(
    jobs: Sequence[tuple[int, RequestClass, int]], submitted: Sequence[int] = ()
) -> WaitingJobs:
    """Give waiting jobs of (queue index, gang, priority); ids from 1, older first."""
    classes = tuple(dict.fromkeys(gang for _, gang, _ in jobs))
    index = {gang: position for position, gang in enumerate(classes)}
    return waiting_jobs(
        classes,
        queue=[queue for queue, _, _ in jobs],
        request_class=[index[gang] for _, gang, _ in jobs],
        priority=[priority for _, _, priority in jobs],
        submitted_us=submitted or range(1, len(jobs) + 1),
    )


def waiting_jobs(
    classes: tuple[RequestClass, ...], users: tuple[str, ...] = ("ann",), **columns: Sequence[int]
) -> WaitingJobs:
    """Give waiting jobs by column; ids from 1, version 1, and 0 in every column left out."""
    count = len(columns["queue"])
    filled = {
        "job_id": range(1, count + 1),
        "version": [1] * count,
        **dict.fromkeys(("priority", "submitted_us", "user", "rank"), [0] * count),
        **dict.fromkeys(("eligible_us", "deadline_us", "expected_seconds"), [0] * count),
        **columns,
    }
    small = {"queue", "request_class", "user"}
    arrays: dict[str, Any] = {
        name: np.array(values, dtype=np.int32 if name in small else np.int64)
        for name, values in filled.items()
    }
    return WaitingJobs(**arrays, users=users, classes=classes)


def a_snapshot(
    waiting: WaitingJobs,
    fleet: Fleet | None = None,
    queues: tuple[Queue, ...] = (Queue(name="default"),),
    cohorts: tuple[Cohort, ...] = (),
    usage: tuple[Usage, ...] = (),
) -> Snapshot:
    """Give a snapshot of the default flavor."""
    return Snapshot(
        serial=1,
        queues=queues,
        cohorts=cohorts,
        flavors=(DEFAULT_FLAVOR,),
        usage=usage,
        waiting=waiting,
        fleet=a_fleet() if fleet is None else fleet,
    )


def a_tainted_node(node_id: int, key: str = "gpu", value: str = "reserved") -> NodeRow:
    """Give a node that only tolerating pods may use."""
    return a_node(node_id, taints=(Taint(key=key, value=value),))
