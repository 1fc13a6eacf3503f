"""The one mutable place of the core: arrays changed by applying rows that the database changed.

Disposable: an empty mirror that is given every row decides exactly what a long-lived one decides.
Applying a row twice is harmless. Nothing here asks for rows; the service brings them.
"""

from collections.abc import Container
from typing import NamedTuple

import numpy as np

from gateway.core.admission import Snapshot, Usage
from gateway.core.devices.building import NodeDevices, devices_of_node, fleet_of, int_column
from gateway.core.devices.fleet import Fleet
from gateway.core.devices.rows import DeviceRow, NodeRow
from gateway.core.jobs.columns import WaitingJobs
from gateway.core.jobs.request import RequestClass
from gateway.core.queues.definitions import Cohort, Flavor, Queue
from gateway.core.vocabulary import JobState


class JobRow(NamedTuple):
    """A job as the decision sees it; any state, so that a started job leaves the waiting set."""

    job_id: int
    version: int
    queue: str
    class_id: int
    priority: int
    submitted_us: int
    state: JobState
    is_quarantined: bool
    user: str = ""
    rank: int = 0
    eligible_us: int = 0
    deadline_us: int = 0
    expected_seconds: int = 0


class ClassRow(NamedTuple):
    """A request class under its database id."""

    class_id: int
    request: RequestClass


class ChargeRow(NamedTuple):
    """What one live or ended reservation uses of one quota pair."""

    charge_id: int
    queue: str
    flavor: str
    resource: str
    amount: int
    is_live: bool
    user: str = ""
    reserved_us: int = 0
    closed_us: int = 0
    """0 while it is live."""


class DefinitionRows(NamedTuple):
    """All definitions at one generation; they are few, so they come whole."""

    generation: int
    queues: tuple[Queue, ...]
    cohorts: tuple[Cohort, ...]
    flavors: tuple[Flavor, ...]


class MirrorRows(NamedTuple):
    """Rows that changed since the last reading; `definitions` None when unchanged."""

    jobs: tuple[JobRow, ...] = ()
    classes: tuple[ClassRow, ...] = ()
    nodes: tuple[NodeRow, ...] = ()
    devices: tuple[DeviceRow, ...] = ()
    charges: tuple[ChargeRow, ...] = ()
    definitions: DefinitionRows | None = None
    is_inventory_complete: bool | None = None


class Mirror:
    """Keeps what the database holds, in the form the decision wants."""

    def __init__(self) -> None:
        """Start empty; the first rows to apply are all of them."""
        self.jobs: dict[int, JobRow] = {}
        self.classes: dict[int, RequestClass] = {}
        self.nodes: dict[int, NodeRow] = {}
        self.devices: dict[int, dict[int, DeviceRow]] = {}
        self.charges: dict[int, ChargeRow] = {}
        self.definitions = DefinitionRows(0, (), (), ())
        self.is_inventory_complete = False
        # Each part is built again only after a row of its kind changed.
        self._node_devices: dict[int, NodeDevices] = {}
        self._fleet: Fleet | None = None
        self._waiting: WaitingJobs | None = None
        self._usage: tuple[Usage, ...] | None = None

    def apply(self, rows: MirrorRows) -> None:
        """Take changed rows; older state of the same ids is replaced."""
        for job in rows.jobs:
            self._apply_job(job)
        self.classes.update((row.class_id, row.request) for row in rows.classes)
        if rows.definitions is not None:
            self.definitions = rows.definitions
        if any((rows.jobs, rows.classes, rows.definitions is not None)):
            self._waiting = None
        self._apply_charges(rows.charges)
        self._apply_inventory(rows)

    def _apply_job(self, job: JobRow) -> None:
        if job.state is JobState.PENDING and not job.is_quarantined:
            self.jobs[job.job_id] = job
        else:
            self.jobs.pop(job.job_id, None)

    def _apply_charges(self, charges: tuple[ChargeRow, ...]) -> None:
        for charge in charges:
            if charge.is_live:
                self.charges[charge.charge_id] = charge
            else:
                self.charges.pop(charge.charge_id, None)
            self._usage = None

    def _apply_inventory(self, rows: MirrorRows) -> None:
        self.nodes.update((node.node_id, node) for node in rows.nodes)
        self._apply_devices(rows.devices)
        if rows.is_inventory_complete is not None:
            self.is_inventory_complete = rows.is_inventory_complete
        if any((rows.nodes, rows.devices, rows.is_inventory_complete is not None)):
            self._fleet = None

    def _apply_devices(self, devices: tuple[DeviceRow, ...]) -> None:
        for device in devices:
            self.devices.setdefault(device.node_id, {})[device.device_id] = device
        for node_id in {device.node_id for device in devices}:
            self._node_devices[node_id] = devices_of_node(self.devices[node_id].values())

    def snapshot(self, serial: int) -> Snapshot:
        """Give the present state as a snapshot; equal rows give equal snapshots."""
        self._fleet = self._fleet or fleet_of(
            self.nodes.values(), self._node_devices, is_complete=self.is_inventory_complete
        )
        self._waiting = self._waiting or self._waiting_jobs()
        if self._usage is None:
            self._usage = self._usage_now()
        return Snapshot(
            serial=serial,
            queues=self.definitions.queues,
            cohorts=self.definitions.cohorts,
            flavors=self.definitions.flavors,
            usage=self._usage,
            waiting=self._waiting,
            fleet=self._fleet,
        )

    def class_ids(self) -> tuple[int, ...]:
        """Give the database ids of the snapshot's classes, in the order of their indexes."""
        return tuple(sorted({job.class_id for job in self.jobs.values()} & set(self.classes)))

    def _usage_now(self) -> tuple[Usage, ...]:
        usage: dict[tuple[str, str, str], int] = {}
        for charge in self.charges.values():
            key = (charge.queue, charge.flavor, charge.resource)
            usage[key] = usage.get(key, 0) + charge.amount
        return tuple(
            Usage(queue=queue, flavor=flavor, resource=resource, amount=amount)
            for (queue, flavor, resource), amount in sorted(usage.items())
        )

    def _waiting_jobs(self) -> WaitingJobs:
        """Give the columns; jobs of an unknown queue or class wait until that row is read too."""
        class_ids = self.class_ids()
        class_index = {class_id: index for index, class_id in enumerate(class_ids)}
        queue_index = {queue.name: i for i, queue in enumerate(self.definitions.queues)}
        rows = self._placeable(queue_index, class_index)
        users = tuple(sorted({job.user for job in rows}))
        user_index = {user: index for index, user in enumerate(users)}
        return WaitingJobs(
            job_id=int_column(rows, "job_id"),
            version=int_column(rows, "version"),
            queue=np.array([queue_index[job.queue] for job in rows], dtype=np.int32),
            request_class=np.array([class_index[job.class_id] for job in rows], dtype=np.int32),
            priority=int_column(rows, "priority"),
            submitted_us=int_column(rows, "submitted_us"),
            user=np.array([user_index[job.user] for job in rows], dtype=np.int32),
            rank=int_column(rows, "rank"),
            eligible_us=int_column(rows, "eligible_us"),
            deadline_us=int_column(rows, "deadline_us"),
            expected_seconds=int_column(rows, "expected_seconds"),
            users=users,
            classes=tuple(self.classes[class_id] for class_id in class_ids),
        )

    def _placeable(self, queues: Container[str], classes: Container[int]) -> list[JobRow]:
        """Give the jobs whose queue and class are known, by id."""
        return [
            job
            for _, job in sorted(self.jobs.items())
            if job.queue in queues and job.class_id in classes
        ]
