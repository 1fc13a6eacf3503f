"""Writes one plan: gangs in batches, each guarded by the epoch and the definitions' generation.

A gang that misses its compare-and-set or meets a taken device is dropped alone; the next cycle
runs at once. A gang whose rows make no sense is set aside afterwards, so that it stops nobody.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import chain
from typing import Any

from gateway.core.admission import Admit, ClassHold, CyclePlan, QueueHold
from gateway.core.admission.types import NodeHold
from gateway.core.jobs.request import RequestClass
from gateway.core.queues.definitions import Flavor
from gateway.db import jobs as job_rows
from gateway.db.engine import Row, Writer
from gateway.db.events import NewEvent, append_event, append_events
from gateway.db.grants import Grant, GrantConflict
from gateway.db.judge import reserve
from gateway.db.leases import require_epoch
from gateway.db.node_holds import store_node_holds
from gateway.db.reasons import all_queue_holds, replace_queue_holds, store_class_holds
from gateway.db.state import read_generation
from gateway.db.usage import UsageNote, note_usage
from gateway.errors import StaleVersion
from gateway.service.context import SYSTEM_ACTOR, Gateway
from gateway.service.crash_points import reach
from gateway.service.grants import grant_pods, object_name
from gateway.service.quarantine import POISON, quarantine
from gateway.service.user_usage import UsageTerms

BATCH = 200
"""Gangs in one transaction."""
MOST_PODS = 200
"""Pods in one transaction, unless a single gang has more: about a second on PostgreSQL. For as long
as it lasts the lease cannot be renewed, and on SQLite every submit waits."""

Barred = tuple[str, str]
"""(queue, user); an empty user stands for everybody."""


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What a plan was made on."""

    classes: Mapping[int, RequestClass]
    """By database id."""
    flavors: Mapping[str, Flavor]
    """By name, of that generation of definitions."""
    generation: int
    epoch: int
    usage: UsageTerms
    node_holds: tuple[NodeHold, ...] = ()


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
    is_told: bool = False
    """Whether its reasons are in the database, as far as they were news."""
    _poisoned: list[tuple[Row, Exception]] = field(default_factory=list)

    def run(self) -> None:
        """Write everything; raises StaleLeader when somebody else leads."""
        # Several transactions, so that a long plan does not keep submits out; each one checks anew
        # that the plan still holds.
        for batch in batches(self.plan.admits):
            self._write_batch(batch)
        barred = {(each.queue, each.user): each for each in self.plan.queue_holds}
        holds_change = self.plan.node_holds != self.view.node_holds
        if self.plan.class_holds or holds_change or self._is_news(barred):
            self.is_told = self.gateway.database.run_write(partial(self._store_holds, barred))
            # Only now: what was written in a transaction that fails at its end is not there.
            self.gateway.mirror.barred = barred if self.is_told else None
        else:
            self.is_told = True

    def _write_batch(self, batch: Sequence[Admit]) -> None:
        done = self.gateway.database.run_write(partial(self._admit, batch))
        self.admitted += done
        self.dropped += len(batch) - done
        for job, error in self._poisoned:
            quarantine(self.gateway, job, error)

    def _guard(self, writer: Writer) -> bool:
        """Whether the plan still holds; raises StaleLeader when this process does not lead."""
        # Locks the lease's row: nobody takes over before this transaction ends.
        require_epoch(writer, self.view.epoch)
        self.is_outdated = read_generation(writer.connection) != self.view.generation
        return not self.is_outdated

    def _admit(self, batch: Sequence[Admit], writer: Writer) -> int:
        """Reserve a batch; gives how many gangs were."""
        self._poisoned.clear()  # of the batch before, or of this one's transaction that is repeated
        if not self._guard(writer):
            return 0
        at_us = self.gateway.clock.now_us()
        jobs = job_rows.get_job_heads(writer.connection, [each.job_id for each in batch])
        known = [each for each in batch if each.job_id in jobs]
        notes = self._reserve_as_can_be(writer, known, jobs, at_us)
        # After the whole batch: a user's row is written once, and locked for a short time.
        entries = [note for note in notes if note.amount]
        note_usage(writer, entries, at_us, self.view.usage.half_life_us)
        return len(notes)

    def _reserve_as_can_be(
        self, writer: Writer, admits: Sequence[Admit], jobs: Mapping[int, Row], at_us: int
    ) -> list[UsageNote]:
        """Reserve gangs together, or each alone where one is amiss, so that only it is dropped."""
        try:
            return self._reserve(writer, admits, jobs, at_us)
        except (StaleVersion, GrantConflict, *POISON) as error:
            if len(admits) > 1:
                alone = ([each] for each in admits)
                tried = (self._reserve_as_can_be(writer, each, jobs, at_us) for each in alone)
                return list(chain.from_iterable(tried))
            if isinstance(error, POISON):
                self._poisoned.append((jobs[admits[0].job_id], error))
            return []

    def _reserve(
        self, writer: Writer, admits: Sequence[Admit], jobs: Mapping[int, Row], at_us: int
    ) -> list[UsageNote]:
        """Reserve gangs, all or none; gives what each counts for its user from now on."""
        grants = [self._grant(each, jobs[each.job_id], at_us) for each in admits]
        users = {each.job_id: jobs[each.job_id]["user_name"] for each in admits}
        with writer.savepoint():
            reserve(writer, grants, users)
            append_events(
                writer, [_reserved_event(each, jobs[each.job_id], at_us) for each in admits]
            )
            # Tests kill the process here, between the rows and their commit.
            reach("in_reserve")
        return [
            UsageNote(admit.queue, users[admit.job_id], grant.usage_entry)
            for admit, grant in zip(admits, grants, strict=True)
        ]

    def _grant(self, admit: Admit, job: Row, at_us: int) -> Grant:
        backend = self.gateway.backend
        number = job["attempt"] + 1
        part = self.view.usage.part_of(admit.queue, admit.charges)
        return Grant(
            job_id=admit.job_id,
            version=admit.version,
            attempt=number,
            epoch=self.view.epoch,
            backend=backend.name,
            guarantee=backend.guarantee,
            object_name=object_name(job["name"], job["uid"], number),
            at_us=at_us,
            pods=grant_pods(admit, self.view.classes[admit.class_index], self.view.flavors),
            charges=tuple(
                (admit.queue, charge.flavor, charge.resource, charge.amount)
                for charge in admit.charges
            ),
            usage_part=part,
            usage_entry=self.view.usage.entry_of(part, job["expected_seconds"]),
        )

    def _store_holds(self, barred: Mapping[Barred, QueueHold], writer: Writer) -> bool:
        """Store why the others wait, as far as it is news; False when the plan does not hold."""
        if self.is_outdated or not self._guard(writer):
            return False
        at_us = self.gateway.clock.now_us()
        store_class_holds(writer, [self._hold_row(hold, at_us) for hold in self.plan.class_holds])
        stored = all_queue_holds(writer.connection)
        fresh = [
            {
                "queue": each.queue,
                "user_name": each.user,
                "reason": each.reason,
                "detail": each.detail,
                "decided_us": at_us,
            }
            for key, each in barred.items()
            if stored.get(key) != (each.reason, each.detail)
        ]
        replace_queue_holds(writer, stored.keys() - barred.keys(), fresh)
        self._store_node_holds(writer, at_us)
        return True

    def _store_node_holds(self, writer: Writer, at_us: int) -> None:
        """Store who holds nodes, as far as it is news."""
        if self.plan.node_holds == self.view.node_holds:
            return
        for hold in store_node_holds(writer, self.plan.node_holds, at_us):
            detail = f"{len(hold.node_ids)} nodes of flavor {hold.flavor} until it starts"
            event = NewEvent(
                at_us=at_us,
                kind="nodes_held",
                actor=SYSTEM_ACTOR,
                job_id=hold.job_id,
                detail=detail,
                data={"flavor": hold.flavor, "node_ids": list(hold.node_ids)},
            )
            append_event(writer, event)

    def _is_news(self, barred: Mapping[Barred, QueueHold]) -> bool:
        return self.gateway.mirror.barred != barred

    def _hold_row(self, hold: ClassHold, at_us: int) -> dict[str, Any]:
        return {
            "queue": hold.queue,
            "class_id": hold.class_index,
            "reason": hold.reason,
            "explanation": _explanation(hold),
            "config_generation": self.view.generation,
            "serial": self.plan.serial,
            "decided_us": at_us,
        }


def batches(admits: Iterable[Admit]) -> Iterator[list[Admit]]:
    """Give what is written together, in the order of the plan."""
    batch: list[Admit] = []
    pods = 0
    for admit in admits:
        more = len(admit.placements)
        if batch and (len(batch) == BATCH or pods + more > MOST_PODS):
            yield batch
            batch, pods = [], 0
        batch.append(admit)
        pods += more
    if batch:
        yield batch


def _explanation(hold: ClassHold) -> dict[str, Any]:
    return {
        "causes": list(map(asdict, hold.causes)),
        "quota_path": list(map(asdict, hold.quota_path)),
        "limiting": hold.limiting,
        "unblock": list(hold.unblock),
        "lifts": [list(map(asdict, lifts)) for lifts in hold.lifts],
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
