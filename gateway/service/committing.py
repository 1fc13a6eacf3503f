"""Writes one plan: gangs in batches, each guarded by the epoch and the definitions' generation.

A gang that misses its compare-and-set or meets a taken device is dropped alone; the next cycle
runs at once. A gang whose rows make no sense is set aside afterwards, so that it stops nobody.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

from gateway.core.admission import Admit, ClassHold, CyclePlan, Snapshot
from gateway.core.vocabulary import JobState, Reason
from gateway.db import jobs as job_rows
from gateway.db.engine import Row, Writer
from gateway.db.events import NewEvent, append_event
from gateway.db.judge import Grant, GrantConflict, reserve
from gateway.db.leases import require_epoch
from gateway.db.state import read_generation
from gateway.errors import StaleVersion
from gateway.service.context import SYSTEM_ACTOR, Explained, Gateway
from gateway.service.crash_points import reach
from gateway.service.grants import grant_pods, object_name
from gateway.service.quarantine import POISON, quarantine

BATCH = 200
"""Gangs in one transaction."""
REFRESH_SECONDS = 30
"""An explanation whose reason stays is written again at most this often."""


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What a cycle decides on, read at one moment."""

    snapshot: Snapshot
    class_ids: tuple[int, ...]
    """Database ids of the snapshot's classes."""
    generation: int
    epoch: int
    room: int
    """Gangs that may still be reserved before the launches catch up."""


@dataclass(slots=True, kw_only=True)
class Commit:
    """One plan on its way into the database, and what became of it."""

    gateway: Gateway
    view: View
    plan: CyclePlan
    admitted: int = 0
    dropped: int = 0
    is_outdated: bool = False
    """Definitions changed since the plan was made; nothing more of it is written."""
    _poisoned: list[tuple[Row, Exception]] = field(default_factory=list)
    _explained: dict[tuple[str, int], Explained] = field(default_factory=dict)

    def run(self) -> None:
        """Write everything; raises StaleLeader when somebody else leads."""
        admits = self.plan.admits[: self.view.room]
        for start in range(0, len(admits), BATCH):
            self._write_batch(admits[start : start + BATCH])
        if self.plan.holds or self._throttled:
            self.gateway.database.run_write(self._store_holds)
        self.gateway.mirror.explained.update(self._explained)

    @property
    def _throttled(self) -> tuple[Admit, ...]:
        """Gangs that have a place, but the cluster is not to be flooded with launches."""
        return self.plan.admits[self.view.room :]

    def _write_batch(self, batch: Sequence[Admit]) -> None:
        done = self.gateway.database.run_write(partial(self._admit, batch))
        self.admitted += done
        self.dropped += len(batch) - done
        for job, error in self._poisoned:
            quarantine(self.gateway, job, error)

    def _guard(self, writer: Writer) -> bool:
        """Whether the plan still holds; raises StaleLeader when this process does not lead."""
        require_epoch(writer, self.view.epoch)
        self.is_outdated = read_generation(writer.connection) != self.view.generation
        return not self.is_outdated

    def _admit(self, batch: Sequence[Admit], writer: Writer) -> int:
        """Reserve a batch; gives how many gangs were."""
        self._poisoned.clear()  # of the batch before, or of this one's transaction that is repeated
        if not self._guard(writer):
            return 0
        at_us = self.gateway.clock.now_us()
        return sum(self._reserve(writer, admit, at_us) for admit in batch)

    def _reserve(self, writer: Writer, admit: Admit, at_us: int) -> bool:
        job = job_rows.get_job_head(writer.connection, admit.job_id)
        if job is None:
            return False
        try:
            with writer.savepoint():
                reserve(writer, self._grant(admit, job, at_us))
                append_event(writer, _reserved_event(admit, job, at_us))
                reach("in_reserve")
        except (StaleVersion, GrantConflict):
            return False
        except POISON as error:
            self._poisoned.append((job, error))
            return False
        return True

    def _grant(self, admit: Admit, job: Row, at_us: int) -> Grant:
        backend = self.gateway.backend
        number = job["attempt"] + 1
        classes = self.view.snapshot.waiting.classes
        return Grant(
            job_id=admit.job_id,
            version=admit.version,
            attempt=number,
            epoch=self.view.epoch,
            backend=backend.name,
            guarantee=backend.guarantee,
            object_name=object_name(job["name"], job["uid"], number),
            at_us=at_us,
            pods=grant_pods(admit, classes[self.view.class_ids.index(job["class_id"])]),
            charges=tuple(
                (admit.queue, charge.flavor, charge.resource, charge.amount)
                for charge in admit.charges
            ),
        )

    def _store_holds(self, writer: Writer) -> None:
        """Store why the others wait: reasons that changed, explanations that are due."""
        if self.is_outdated or not self._guard(writer):
            return
        self._store_reasons(writer)
        self._explained.clear()
        at_us = self.gateway.clock.now_us()
        for hold in self.plan.class_holds:
            self._store_explanation(writer, hold, at_us)

    def _store_reasons(self, writer: Writer) -> None:
        stored = job_rows.reasons_of(writer.connection, (JobState.PENDING,))
        changed = [row for row in self._reasons() if stored.get(row[0], row[2]) != row[2]]
        job_rows.set_reasons(writer, changed, self.plan.serial)

    def _reasons(self) -> Iterator[tuple[int, int, Reason]]:
        """Give job, version and reason of everybody who waits on."""
        for hold in self.plan.holds:
            yield hold.job_id, hold.version, hold.reason
        for admit in self._throttled:
            yield admit.job_id, admit.version, Reason.LAUNCH_THROTTLED

    def _store_explanation(self, writer: Writer, hold: ClassHold, at_us: int) -> None:
        class_id = self.view.class_ids[hold.class_index]
        explanation = _explanation(hold)
        fresh = Explained(
            epoch=self.view.epoch,
            generation=self.view.generation,
            reason=hold.reason,
            explanation=explanation,
            at_us=at_us,
        )
        known = self.gateway.mirror.explained.get((hold.queue, class_id))
        if known is not None and not _is_due(known, fresh):
            return
        self._explained[hold.queue, class_id] = fresh
        job_rows.upsert_class_hold(
            writer,
            {
                "queue": hold.queue,
                "class_id": class_id,
                "reason": hold.reason,
                "explanation": explanation,
                "config_generation": self.view.generation,
                "serial": self.plan.serial,
                "decided_us": at_us,
            },
        )


def _is_due(known: Explained, fresh: Explained) -> bool:
    """Whether an explanation must be written: at once for another code, else now and then."""
    if (known.epoch, known.generation, known.reason) != (
        fresh.epoch,
        fresh.generation,
        fresh.reason,
    ):
        return True
    is_old = fresh.at_us - known.at_us >= REFRESH_SECONDS * 1_000_000
    return is_old and known.explanation != fresh.explanation


def _explanation(hold: ClassHold) -> dict[str, Any]:
    return {
        "causes": list(map(asdict, hold.causes)),
        "quota_path": list(map(asdict, hold.quota_path)),
        "limiting": hold.limiting,
        "unblock": list(hold.unblock),
    }


def _reserved_event(admit: Admit, job: Row, at_us: int) -> NewEvent:
    nodes = {placement.node_id for placement in admit.placements}
    return NewEvent(
        at_us=at_us,
        kind="reserved",
        actor=SYSTEM_ACTOR,
        job_id=admit.job_id,
        detail=f"{len(admit.placements)} pods on {len(nodes)} nodes",
        data={"from": "pending", "to": "reserved", "attempt": job["attempt"] + 1},
    )
