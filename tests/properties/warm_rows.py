"""A world as a database holds it: rows with ids and versions; readers get what changed.

Nothing decides here. Rows are worked out from the world at every reading and compared with those
that were read before, so no step can forget to write something.
"""

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from gateway.core.admission.types import NodeHold
from gateway.core.devices.rows import DeviceRow, NodeRow
from gateway.core.jobs.request import RequestClass
from gateway.core.mirror import ChargeRow, ClassRow, DefinitionRows, JobRow, Mirror, MirrorRows
from gateway.core.vocabulary import JobState
from tests.properties.engine_definitions import FLAVORS, SECOND_US
from tests.properties.engine_world import Running, Waiting, World

Key = TypeVar("Key", bound=Hashable)
Row = TypeVar("Row")
NOTHING_DEFINED = DefinitionRows(0, (), (), ())


class Attempt(NamedTuple):
    """One reservation of a job."""

    attempt_id: int
    gang: Running


@dataclass(slots=True)
class Rows:
    """What the tables hold; rows that are gone from the world stay, and say so."""

    world: World
    held: dict[int, Waiting] = field(default_factory=dict)
    """Jobs that a user holds back."""
    jobs: dict[int, JobRow] = field(default_factory=dict)
    classes: dict[RequestClass, int] = field(default_factory=dict)
    nodes: dict[int, NodeRow] = field(default_factory=dict)
    devices: dict[int, DeviceRow] = field(default_factory=dict)
    charges: dict[tuple[int, int], ChargeRow] = field(default_factory=dict)
    attempts: dict[int, Attempt] = field(default_factory=dict)
    definitions: DefinitionRows = NOTHING_DEFINED
    usage: dict[str, dict[str, int]] = field(default_factory=dict)
    node_holds: tuple[NodeHold, ...] = ()
    is_complete: bool | None = None
    _attempts_made: int = 0

    def changes(self) -> MirrorRows:
        """Give what a reader gets who read everything before."""
        known = len(self.classes)
        jobs = self._changed(self.jobs, dict(self._job_rows()))
        nodes, devices = self._inventory()
        charges = self._changed(self.charges, dict(self._charge_rows()))
        usage = self._usage()
        rows = MirrorRows(
            jobs=jobs,
            classes=tuple(ClassRow(id_, gang) for gang, id_ in list(self.classes.items())[known:]),
            nodes=self._changed(self.nodes, nodes),
            devices=self._changed(self.devices, devices),
            charges=charges,
            usage=usage if usage != self.usage else None,
            node_holds=self.world.node_holds if self.world.node_holds != self.node_holds else None,
            is_inventory_complete=self.world.is_complete
            if self.world.is_complete != self.is_complete
            else None,
        )
        self.usage, self.is_complete = usage, self.world.is_complete
        self.node_holds = self.world.node_holds
        return self._with_definitions(rows)

    def everything(self) -> MirrorRows:
        """Give what a reader gets who starts from nothing; call it after `changes`."""
        pending = [row for row in self.jobs.values() if row.state is JobState.PENDING]
        live = [row for row in self.charges.values() if row.is_live]
        return MirrorRows(
            jobs=tuple(pending),
            classes=tuple(ClassRow(class_id, gang) for gang, class_id in self.classes.items()),
            nodes=tuple(self.nodes.values()),
            devices=tuple(self.devices.values()),
            charges=(*live, *self._spent()),
            usage=self.usage,
            definitions=self.definitions,
            node_holds=self.node_holds,
            is_inventory_complete=self.is_complete,
        )

    def cold(self) -> Mirror:
        """Give a mirror that starts now."""
        mirror = Mirror()
        mirror.apply(self.everything())
        return mirror

    def _with_definitions(self, rows: MirrorRows) -> MirrorRows:
        """Add definitions where they changed, and what a new or longer budget has to count."""
        queues, cohorts = tuple(self.world.queues.values()), tuple(self.world.cohorts.values())
        if (queues, cohorts) == self.definitions[1:3]:
            return rows
        budgets = [each.budget for each in self.definitions.queues if each.budget]
        generation = self.definitions.generation + 1
        self.definitions = DefinitionRows(generation, queues, cohorts, FLAVORS)
        rows = rows._replace(definitions=self.definitions)
        if budgets == [each.budget for each in queues if each.budget]:
            return rows
        return rows._replace(charges=(*rows.charges, *self._spent()))

    def _spent(self) -> Iterator[ChargeRow]:
        """Give ended charges that may reach into the present window of their queue's budget."""
        for queue in self.definitions.queues:
            ended = [
                row
                for row in self.charges.values()
                if (row.queue, row.resource) == (queue.name, "gpu") and not row.is_live
            ]
            if queue.budget and ended:
                last_us = max(row.closed_us for row in ended)
                since_us = last_us - queue.budget.window_seconds * SECOND_US
                yield from (row for row in ended if row.closed_us > since_us)

    def _job_rows(self) -> Iterator[tuple[int, JobRow]]:
        world = self.world
        for state, jobs in ((JobState.PENDING, world.waiting), (JobState.HELD, self.held)):
            for job_id, job in jobs.items():
                yield job_id, self._job_row(job_id, job, state)
        for job_id, gang in world.running.items():
            yield job_id, self._job_row(job_id, gang.job, JobState.RESERVED)
        here = world.waiting.keys() | world.running.keys() | self.held.keys()
        for job_id in self.jobs.keys() - here:
            yield job_id, self.jobs[job_id]._replace(state=JobState.CANCELLED)

    def _job_row(self, job_id: int, job: Waiting, state: JobState) -> JobRow:
        known = self.jobs.get(job_id)
        class_id = self.classes.setdefault(job.gang, len(self.classes) + 1)
        values = {name: getattr(job, name) for name in Waiting._fields if name != "gang"}
        row = JobRow(
            job_id=job_id,
            version=known.version if known else 1,
            class_id=class_id,
            state=state,
            is_quarantined=False,
            **values,
        )
        return row if known in {None, row} else row._replace(version=row.version + 1)

    def _inventory(self) -> tuple[dict[int, NodeRow], dict[int, DeviceRow]]:
        nodes = {key: row._replace(is_present=False) for key, row in self.nodes.items()}
        devices = {key: row._replace(is_present=False) for key, row in self.devices.items()}
        for node, held in self.world.node_rows():
            free = {name: max(0, amount) for name, amount in node.free.items()}
            nodes[node.node_id] = node._replace(free=free)
            devices.update((device.device_id, device) for device in held)
        return nodes, devices

    def _charge_rows(self) -> Iterator[tuple[tuple[int, int], ChargeRow]]:
        for job_id, gang in self.world.running.items():
            known = self.attempts.get(job_id)
            if known is None or known.gang is not gang:
                self._attempts_made += 1
                self.attempts[job_id] = Attempt(self._attempts_made, gang)
        running = {self.attempts[job_id].attempt_id for job_id in self.world.running}
        for key, row in self.charges.items():
            if row.is_live and row.attempt_id not in running:
                yield key, row._replace(is_live=False, closed_us=self.world.now_us)
        for job_id, gang in self.world.running.items():
            attempt_id = self.attempts[job_id].attempt_id
            for at, charge in enumerate(gang.admit.charges):
                yield (
                    (attempt_id, at),
                    ChargeRow(
                        charge_id=100 * attempt_id + at,
                        queue=gang.admit.queue,
                        flavor=charge.flavor,
                        resource=charge.resource,
                        amount=charge.amount,
                        is_live=True,
                        user=gang.job.user,
                        reserved_us=gang.since_us,
                        attempt_id=attempt_id,
                    ),
                )

    def _usage(self) -> dict[str, dict[str, int]]:
        usage: dict[str, dict[str, int]] = {}
        for (queue, user), amount in self.world.used_lately.items():
            usage.setdefault(queue, {})[user] = amount
        return usage

    @staticmethod
    def _changed(known: dict[Key, Row], now: Mapping[Key, Row]) -> tuple[Row, ...]:
        changed = {key: row for key, row in now.items() if known.get(key) != row}
        known.update(changed)
        return tuple(changed.values())
