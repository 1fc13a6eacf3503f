"""The work on live attempts: each with its job and its Launch, read from the database."""

from collections.abc import Iterable
from dataclasses import dataclass

from gateway.backends.base import Launch, ObjectRef, PlannedDevice, PlannedPod
from gateway.core.vocabulary import DeviceKind
from gateway.db import attempts as attempt_rows
from gateway.db import jobs as job_rows
from gateway.db.engine import Connection, Row
from gateway.service.context import Gateway


@dataclass(frozen=True, slots=True)
class Work:
    """One attempt with its job, as read at the start of a pass."""

    job: Row
    """Without its spec."""
    attempt: Row
    launch: Launch


def live_work(gateway: Gateway) -> list[tuple[Row, Row]]:
    """Give (job, attempt) of every live attempt that is not in quarantine, oldest first."""
    with gateway.database.read() as connection:
        found = attempt_rows.live_attempts(connection)
    _forget_ended(gateway, (attempt["id"] for _, attempt in found))
    return list(found)


def _forget_ended(gateway: Gateway, live: Iterable[int]) -> None:
    for attempt_id in set(gateway.launches).difference(live):
        gateway.launches.pop(attempt_id, None)


def load(gateway: Gateway, job: Row, attempt: Row) -> Work:
    """Give the work on an attempt; what it launches is built once, as it never changes."""
    launch = gateway.launches.get(attempt["id"])
    if launch is None:
        with gateway.database.read() as connection:
            launch = launch_of(connection, job, attempt)
        gateway.launches[attempt["id"]] = launch
    return Work(job, attempt, launch)


def launch_of(connection: Connection, job: Row, attempt: Row) -> Launch:
    """Give everything a back end needs to launch this attempt; equal for every retry of it.

    Raises:
        LookupError: what is reserved is not what the job asked for.
    """
    held = attempt_rows.devices_of(connection, attempt["id"])
    pods = attempt_rows.pods_of(connection, attempt["id"])
    reserved = (len(pods), sum(map(len, held.values())))
    if reserved != (job["pods"], job["gpus"] + job["rdma"]):
        raise LookupError(f"{reserved[0]} pods with {reserved[1]} devices are reserved")
    return Launch(
        job_id=job["uid"],
        attempt=attempt["number"],
        namespace=job["namespace"],
        object_name=attempt["object_name"],
        epoch=attempt["epoch"],
        spec_digest=job["spec_digest"],
        manifest=job_rows.get_spec(connection, job["id"])["manifest"],
        pods=tuple(_pod(pod, held.get(pod["id"], [])) for pod in pods),
    )


def ref_of(job: Row, attempt: Row) -> ObjectRef:
    """Give the identity of an attempt's object; the UID is empty before it was created."""
    return ObjectRef(
        namespace=job["namespace"], name=attempt["object_name"], uid=attempt["object_uid"]
    )


def _pod(pod: Row, held: list[Row]) -> PlannedPod:
    return PlannedPod(
        pod_set=pod["pod_set"],
        index=pod["pod_index"],
        rank=pod["rank"],
        node=pod["node"],
        devices=tuple(map(_device, held)),
        cpu_millis=pod["amounts"].get("cpu", 0),
        memory_bytes=pod["amounts"].get("memory", 0),
    )


def _device(row: Row) -> PlannedDevice:
    return PlannedDevice(
        kind=DeviceKind(row["kind"]),
        ordinal=row["ordinal"],
        name=row["name"],
        uuid=row["uuid"],
        pci_address=row["pci_address"],
        numa=row["numa"],
        rail=row["rail"],
    )
