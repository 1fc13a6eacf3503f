"""The work on live attempts: each with its job and its Launch, read for many of them at once."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from gateway.backends.base import Launch, ObjectRef, PlannedDevice, PlannedPod
from gateway.core.resources.node_rules import Toleration
from gateway.core.vocabulary import AttemptPhase, DeviceKind, JobState
from gateway.db import attempts as attempt_rows
from gateway.db import jobs as job_rows
from gateway.db.engine import Connection, Row
from gateway.service.context import Gateway
from gateway.service.quarantine import POISON, guarded


@dataclass(frozen=True, slots=True)
class Work:
    """One attempt with its job, as read at the start of a pass."""

    job: Row
    """Without its spec."""
    attempt: Row
    launch: Launch

    @property
    def attempt_id(self) -> int:
        """Row id of the attempt."""
        return int(self.attempt["id"])

    @property
    def job_id(self) -> int:
        """Row id of the job."""
        return int(self.job["id"])

    @property
    def state(self) -> JobState:
        """State of the job."""
        return JobState(self.job["state"])

    @property
    def phase(self) -> AttemptPhase:
        """Phase of the attempt."""
        return AttemptPhase(self.attempt["phase"])


class Facts(NamedTuple):
    """What launches are made of, read for many attempts at once."""

    pods: Mapping[int, Sequence[Row]]
    """By attempt."""
    devices: Mapping[int, Sequence[Row]]
    """By assignment."""
    specs: Mapping[int, Mapping[str, Any]]
    """By job."""


def live_work(gateway: Gateway) -> list[tuple[Row, Row]]:
    """Give (job, attempt) of every live attempt that is not in quarantine, oldest first."""
    with gateway.database.read() as connection:
        found = attempt_rows.live_attempts(connection)
    _forget_ended(gateway, (attempt["id"] for _, attempt in found))
    return list(found)


def _forget_ended(gateway: Gateway, live: Iterable[int]) -> None:
    for attempt_id in set(gateway.launches).difference(live):
        gateway.launches.pop(attempt_id, None)


def load_all(gateway: Gateway, pairs: Iterable[tuple[Row, Row]]) -> list[Work]:
    """Give the work on attempts; what each launches is built once, as it never changes.

    A job whose rows make no sense is set aside and left out.
    """
    wanted = list(pairs)
    _remember_all(gateway, [pair for pair in wanted if pair[1]["id"] not in gateway.launches])
    known = gateway.launches
    return [Work(*pair, known[pair[1]["id"]]) for pair in wanted if pair[1]["id"] in known]


def _remember_all(gateway: Gateway, pairs: Sequence[tuple[Row, Row]]) -> None:
    try:
        _remember(gateway, pairs)
    except POISON:
        # Each by itself, so that only the job at fault is set aside.
        for pair in pairs:
            guarded(gateway, pair[0], partial(_remember, gateway, [pair]))


def _remember(gateway: Gateway, pairs: Sequence[tuple[Row, Row]]) -> None:
    if not pairs:
        return
    with gateway.database.read() as connection:
        facts = read_facts(connection, pairs)
    for job, attempt in pairs:
        gateway.launches[attempt["id"]] = launch_of(job, attempt, facts)


def load(gateway: Gateway, job: Row, attempt: Row) -> Work:
    """Give the work on one attempt; raises LookupError where its rows make no sense."""
    if attempt["id"] not in gateway.launches:
        _remember(gateway, [(job, attempt)])
    return Work(job, attempt, gateway.launches[attempt["id"]])


def read_facts(connection: Connection, pairs: Sequence[tuple[Row, Row]]) -> Facts:
    """Read what the launches of these attempts are made of."""
    attempt_ids = [attempt["id"] for _, attempt in pairs]
    return Facts(
        attempt_rows.pods_of_all(connection, attempt_ids),
        attempt_rows.devices_of_all(connection, attempt_ids),
        job_rows.get_specs(connection, [job["id"] for job, _ in pairs]),
    )


def launch_of(job: Row, attempt: Row, facts: Facts) -> Launch:
    """Give everything a back end needs to launch this attempt; equal for every retry of it.

    Raises:
        LookupError: what is reserved is not what the job asked for.
    """
    pods = facts.pods.get(attempt["id"], [])
    held = {pod["id"]: facts.devices.get(pod["id"], []) for pod in pods}
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
        manifest=facts.specs[job["id"]]["manifest"],
        pods=tuple(_pod(pod, held[pod["id"]]) for pod in pods),
    )


def reread(connection: Connection, works: Sequence[Work]) -> list[Work]:
    """Give the same work with its rows as they are now."""
    jobs = job_rows.get_job_heads(connection, [each.job_id for each in works])
    attempts = attempt_rows.get_attempts(connection, [each.attempt_id for each in works])
    # Nobody deletes a job or an attempt while it is live.
    return [Work(jobs[each.job_id], attempts[each.attempt_id], each.launch) for each in works]


def ref_of(job: Row, attempt: Row) -> ObjectRef:
    """Give the identity of an attempt's object; the UID is empty before it was created."""
    return ObjectRef(
        namespace=job["namespace"], name=attempt["object_name"], uid=attempt["object_uid"]
    )


def _pod(pod: Row, held: Sequence[Row]) -> PlannedPod:
    return PlannedPod(
        pod_set=pod["pod_set"],
        index=pod["pod_index"],
        rank=pod["rank"],
        node=pod["node"],
        devices=tuple(map(_device, held)),
        cpu_millis=pod["amounts"].get("cpu", 0),
        memory_bytes=pod["amounts"].get("memory", 0),
        # Not asked of the flavor itself: whoever edits it must not change what is launched.
        tolerations=tuple(Toleration(**item) for item in pod["tolerations"]),
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
