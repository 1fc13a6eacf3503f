"""Rows that tests of the database start from, one line each."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import insert, select

from gateway.core.devices.seen import DeviceSeen, NodeSeen
from gateway.core.jobs.request import RequestClass
from gateway.core.vocabulary import DeviceHealth, DeviceKind, JobState
from gateway.db import judge
from gateway.db.engine import Database, Writer
from gateway.db.fleet import sync_inventory
from gateway.db.grants import Grant, GrantPod
from gateway.db.jobs import intern_class
from gateway.db.moving import free_all
from gateway.db.tables import attempts, jobs
from gateway.errors import StaleVersion
from tests.builders import a_gang

GIB = 2**30
NOW_US = 1_700_000_000_000_000


def seen_device(kind: DeviceKind, ordinal: int, **changes: Any) -> DeviceSeen:
    """Give a healthy device."""
    return DeviceSeen(kind=kind, ordinal=ordinal, name=f"{kind.value}{ordinal}", **changes)


def seen_devices(gpus: int = 2, nics: int = 2) -> tuple[DeviceSeen, ...]:
    """Give a node's healthy devices."""
    kinds = [(DeviceKind.GPU, gpus), (DeviceKind.RDMA, nics)]
    return tuple(seen_device(kind, i) for kind, count in kinds for i in range(count))


def seen_node(name: str = "node-a", **changes: Any) -> NodeSeen:
    """Give a healthy node of 16 cores and 64 GiB with two GPUs and two NICs."""
    values: dict[str, Any] = {
        "name": name,
        "uid": f"uid-of-{name}",
        "machine_type": "test-2x2",
        "health": DeviceHealth.HEALTHY,
        "labels": {"kubernetes.io/hostname": name},
        "total": {"cpu": 16_000, "memory": 64 * GIB, "pods": 110},
        "devices": seen_devices(),
    }
    return NodeSeen(**{**values, **changes})


def add_nodes(database: Database, *nodes: NodeSeen) -> None:
    """Store a fleet of exactly these nodes; one plain node when none is named."""
    seen = nodes or (seen_node(),)
    database.run_write(lambda writer: sync_inventory(writer, seen, NOW_US))


def job_values(name: str, **changes: Any) -> dict[str, Any]:
    """Give the columns of a pending job; its request class is missing."""
    values: dict[str, Any] = {
        "uid": f"uid-{name}",
        "name": name,
        "namespace": "team-a",
        "queue": "default",
        "user_name": "ann",
        "idempotency_key": None,
        "spec": {"name": name},
        "spec_digest": "0" * 64,
        "priority": 0,
        "pods": 1,
        "gpus": 1,
        "rdma": 0,
        "state": JobState.PENDING,
        "start_timeout_seconds": 1800,
        "submitted_us": NOW_US,
    }
    return {**values, **changes}


def insert_job(writer: Writer, values: dict[str, Any]) -> int:
    """Insert a job of these columns; gives its row id."""
    statement = insert(jobs).values(**values, xact_id=writer.xact_id).returning(jobs.c.id)
    return int(writer.connection.execute(statement).scalar_one())


def reserve(writer: Writer, grant: Grant) -> int:
    """Reserve one gang; gives the attempt's row id."""
    judge.reserve(writer, [grant], {grant.job_id: "ann"})
    is_it = (attempts.c.job_id == grant.job_id) & (attempts.c.number == grant.attempt)
    return int(writer.connection.execute(select(attempts.c.id).where(is_it)).scalar_one())


def free(writer: Writer, attempt_id: int, at_us: int) -> bool:
    """Give everything of an attempt back; False when that was done before."""
    try:
        free_all(writer, [attempt_id], at_us)
    except StaleVersion:
        return False
    return True


def insert_a_job(writer: Writer, name: str, request: RequestClass | None = None) -> int:
    """Insert a pending job inside a transaction; gives its row id."""
    class_id = intern_class(writer, request or a_gang())
    return insert_job(writer, job_values(name, class_id=class_id))


def add_job(database: Database, name: str, request: RequestClass | None = None) -> int:
    """Store a pending job; gives its row id."""
    return database.run_write(lambda writer: insert_a_job(writer, name, request))


def a_pod(node_id: int = 1, gpus: Sequence[int] = (0,), **changes: Any) -> GrantPod:
    """Give a pod that wants these GPUs of a node and one core."""
    values: dict[str, Any] = {
        "pod_set": "Worker",
        "index": 0,
        "rank": 0,
        "node_id": node_id,
        "amounts": {"cpu": 1000, "memory": GIB, "pods": 1},
        "devices": tuple((DeviceKind.GPU, ordinal) for ordinal in gpus),
    }
    return GrantPod(**{**values, **changes})


def a_grant(job_id: int, *pods: GrantPod, **changes: Any) -> Grant:
    """Give the first grant of a job; one pod with GPU 0 of node 1 when nothing is said."""
    values: dict[str, Any] = {
        "job_id": job_id,
        "version": 1,
        "attempt": 1,
        "epoch": 1,
        "backend": "simulated",
        "guarantee": "advisory",
        "object_name": f"job-{job_id}-a1",
        "at_us": NOW_US,
        "pods": pods or (a_pod(),),
        "charges": (("default", "default", "gpu", 1),),
    }
    return Grant(**{**values, **changes})
