"""One admission cycle: read what changed, decide, reserve, and store why the others wait."""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from gateway.core.admission import Admit, ClassHold, CyclePlan, Policies, Snapshot, plan_cycle
from gateway.core.jobs.request import RequestClass
from gateway.core.resources import GPU, PODS, RDMA
from gateway.core.vocabulary import DeviceKind, JobState
from gateway.db import attempts as attempt_rows
from gateway.db import jobs as job_rows
from gateway.db.engine import Row, Writer
from gateway.db.events import NewEvent, append_event
from gateway.db.judge import Grant, GrantConflict, GrantPod, reserve
from gateway.db.leases import require_epoch
from gateway.db.state import next_serial, read_generation
from gateway.errors import StaleVersion
from gateway.service.context import SYSTEM_ACTOR, Gateway
from gateway.service.crash_points import reach
from gateway.service.mirroring import refresh

MAX_OBJECT_NAME = 51
"""Leaves room for the replica type and a four-digit index within a Service's 63 characters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleOutcome:
    """What one cycle did; `is_dirty` asks for another one at once."""

    serial: int
    admitted: int
    waiting: int
    is_dirty: bool


def run_cycle(gateway: Gateway) -> CycleOutcome | None:
    """Decide once; None when this process does not lead or too many gangs wait for launch."""
    epoch = gateway.leadership.epoch
    if epoch is None:
        return None
    with gateway.mirror.lock:
        refresh(gateway)
        with gateway.database.read() as connection:
            backlog = attempt_rows.count_unlaunched(connection)
        if backlog >= gateway.settings.max_unlaunched:
            return None
        serial = gateway.database.run_write(next_serial)
        snapshot = gateway.mirror.mirror.snapshot(serial)
        generation = gateway.mirror.mirror.definitions.generation
        class_ids = gateway.mirror.mirror.class_ids()
        gateway.mirror.fleet_view = snapshot
    plan = plan_cycle(snapshot, Policies(), gateway.clock.now_us(), gateway.settings.cycle_budget)
    reach("before_reserve")
    commit = _Commit(
        gateway=gateway,
        snapshot=snapshot,
        plan=plan,
        class_ids=class_ids,
        epoch=epoch,
        generation=generation,
    )
    dropped = gateway.database.run_write(commit.apply)
    if plan.admits:
        reach("after_reserve")
    return CycleOutcome(
        serial=serial,
        admitted=len(plan.admits) - dropped,
        waiting=len(plan.holds),
        is_dirty=dropped > 0 or commit.is_outdated,
    )


@dataclass(slots=True, kw_only=True)
class _Commit:
    """Writes one plan, guarded by the leader's epoch and the definitions' generation."""

    gateway: Gateway
    snapshot: Snapshot
    plan: CyclePlan
    class_ids: Sequence[int]
    epoch: int
    generation: int
    is_outdated: bool = False

    def apply(self, writer: Writer) -> int:
        """Give how many gangs were dropped because something of theirs had changed."""
        require_epoch(writer, self.epoch)
        self.is_outdated = read_generation(writer.connection) != self.generation
        if self.is_outdated:
            return 0
        at_us = self.gateway.clock.now_us()
        dropped = sum(not self._reserve(writer, admit, at_us) for admit in self.plan.admits)
        self._store_reasons(writer)
        for hold in self.plan.class_holds:
            self._store_explanation(writer, hold, at_us)
        return dropped

    def _reserve(self, writer: Writer, admit: Admit, at_us: int) -> bool:
        job = job_rows.get_job_by_row(writer.connection, admit.job_id)
        if job is None:
            return False
        try:
            with writer.savepoint():
                reserve(writer, self._grant(admit, job, at_us))
                append_event(writer, _reserved_event(admit, job, at_us))
        except (StaleVersion, GrantConflict):
            return False
        return True

    def _grant(self, admit: Admit, job: Row, at_us: int) -> Grant:
        backend = self.gateway.backend
        request = self._request(job["class_id"])
        return Grant(
            job_id=admit.job_id,
            version=admit.version,
            attempt=job["attempt"] + 1,
            epoch=self.epoch,
            backend=backend.name,
            guarantee=backend.guarantee,
            object_name=object_name(job["name"], job["uid"], job["attempt"] + 1),
            at_us=at_us,
            pods=grant_pods(admit, request),
            charges=tuple(
                (admit.queue, charge.flavor, charge.resource, charge.amount)
                for charge in admit.charges
            ),
        )

    def _request(self, class_id: int) -> RequestClass:
        return self.snapshot.waiting.classes[self.class_ids.index(class_id)]

    def _store_reasons(self, writer: Writer) -> None:
        """Write only reasons that differ from what is stored."""
        stored = job_rows.reasons_of(writer.connection, (JobState.PENDING,))
        for hold in self.plan.holds:
            if stored.get(hold.job_id, hold.reason) != hold.reason:
                job_rows.set_reason(
                    writer, hold.job_id, hold.version, hold.reason, self.plan.serial
                )

    def _store_explanation(self, writer: Writer, hold: ClassHold, at_us: int) -> None:
        job_rows.upsert_class_hold(
            writer,
            {
                "queue": hold.queue,
                "class_id": self.class_ids[hold.class_index],
                "reason": hold.reason,
                "explanation": _explanation(hold),
                "config_generation": self.generation,
                "serial": self.plan.serial,
                "decided_us": at_us,
            },
        )


def _explanation(hold: ClassHold) -> dict[str, Any]:
    return {
        "causes": [asdict(cause) for cause in hold.causes],
        "quota_path": [asdict(step) for step in hold.quota_path],
        "limiting": hold.limiting,
        "unblock": list(hold.unblock),
    }


def _reserved_event(admit: Admit, job: Row, at_us: int) -> NewEvent:
    return NewEvent(
        at_us=at_us,
        kind="reserved",
        actor=SYSTEM_ACTOR,
        job_id=admit.job_id,
        detail=f"{len(admit.placements)} pods on "
        f"{len({placement.node_id for placement in admit.placements})} nodes",
        data={"from": "pending", "to": "reserved", "attempt": job["attempt"] + 1},
    )


def grant_pods(admit: Admit, request: RequestClass) -> tuple[GrantPod, ...]:
    """Give the pods of a grant by rank: the Master first, then the Workers."""
    per_pod = {pod_set.name: dict(pod_set.per_pod) for pod_set in request.pod_sets}
    return tuple(
        GrantPod(
            pod_set=place.pod_set,
            index=place.index,
            rank=rank,
            node_id=place.node_id,
            amounts={
                **{
                    name: amount
                    for name, amount in per_pod[place.pod_set].items()
                    if name not in {GPU, RDMA}
                },
                PODS: 1,
            },
            devices=(
                *((DeviceKind.GPU, bit) for bit in bits(place.gpu_mask)),
                *((DeviceKind.RDMA, bit) for bit in bits(place.nic_mask)),
            ),
        )
        for rank, place in enumerate(admit.placements)
    )


def bits(mask: int) -> list[int]:
    """Give the ordinals in a mask."""
    return [position for position in range(mask.bit_length()) if mask >> position & 1]


def object_name(job_name: str, uid: str, attempt: int) -> str:
    """Give an attempt's object name: the job's name, a hash of its id, the attempt's number.

    Deterministic, so that a repeated create meets its own object; of its own for each attempt, so
    that late pods of an earlier one are never adopted.
    """
    suffix = f"-{hashlib.sha256(uid.encode()).hexdigest()[:5]}-{attempt}"
    stem = re.sub(r"-+$", "", job_name[: MAX_OBJECT_NAME - len(suffix)])
    return stem + suffix
