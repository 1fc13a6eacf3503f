"""Builds a Launch from what the database holds; equal for every retry of the same attempt."""

from gateway.backends.base import Launch, ObjectRef, PlannedDevice, PlannedPod
from gateway.core.vocabulary import DeviceKind
from gateway.db import attempts as attempt_rows
from gateway.db.engine import Connection, Row


def launch_of(connection: Connection, job: Row, attempt: Row) -> Launch:
    """Give everything a back end needs to launch this attempt."""
    held = attempt_rows.devices_of(connection, attempt["id"])
    pods = attempt_rows.pods_of(connection, attempt["id"])
    return Launch(
        job_id=job["uid"],
        attempt=attempt["number"],
        namespace=job["namespace"],
        object_name=attempt["object_name"],
        epoch=attempt["epoch"],
        spec_digest=job["spec_digest"],
        manifest=job["spec"]["manifest"],
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
        devices=tuple(_device(device) for device in held),
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
