"""The one mutable place of the core: what the database holds, in the form decisions want.

Disposable: an empty mirror that is given every row decides exactly what a long-lived one decides.
Applying a row twice is harmless. Nothing here asks for rows; the service brings them.
"""

from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import NamedTuple

from gateway.core.admission.snapshots import class_ids_of, setting_of, snapshot_of
from gateway.core.admission.state import Definitions, State
from gateway.core.admission.types import NodeHold, Policies, Snapshot
from gateway.core.devices.known_facts import NOTHING_KNOWN, KnownMachines
from gateway.core.devices.rows import DeviceRow, NodeRow
from gateway.core.devices.warm import FleetState
from gateway.core.jobs.request import RequestClass
from gateway.core.queues.budgets import SECOND_US
from gateway.core.queues.definitions import Cohort, Flavor, Queue
from gateway.core.resources import GPU
from gateway.core.vocabulary import HOLDING_STATES, JobState
from gateway.core.waiting.table import NewJob


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

    @property
    def waits(self) -> bool:
        """Whether decisions are about it."""
        return self.state is JobState.PENDING and not self.is_quarantined


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
    attempt_id: int = 0


class DefinitionRows(NamedTuple):
    """All definitions at one generation; they are few, so they come whole."""

    generation: int
    queues: tuple[Queue, ...]
    cohorts: tuple[Cohort, ...]
    flavors: tuple[Flavor, ...]


class MirrorRows(NamedTuple):
    """Rows that changed since the last reading; None where nothing did."""

    jobs: tuple[JobRow, ...] = ()
    waiting: Sequence[NewJob] = ()
    """Jobs that wait for sure, each id once, as a start from nothing reads them."""
    classes: tuple[ClassRow, ...] = ()
    nodes: tuple[NodeRow, ...] = ()
    devices: tuple[DeviceRow, ...] = ()
    charges: tuple[ChargeRow, ...] = ()
    usage: dict[str, dict[str, int]] | None = None
    """Decayed usage by queue and user, all at one landmark."""
    recent: Mapping[int, int] | None = None
    """Jobs by class among those submitted last."""
    node_holds: tuple[NodeHold, ...] | None = None
    """All of them, by flavor."""
    definitions: DefinitionRows | None = None
    is_inventory_complete: bool | None = None


class Mirror:
    """Keeps a state as the database has it."""

    def __init__(
        self, policies: Policies | None = None, known: KnownMachines = NOTHING_KNOWN
    ) -> None:
        """Start empty; the first rows to apply are all of them."""
        self.definitions = DefinitionRows(0, (), (), ())
        self.is_inventory_complete = False
        self.state = State(policies or Policies())
        self._inventory = FleetState(known)
        self._charges: dict[int, ChargeRow] = {}
        self._gangs: dict[int, int] = {}
        """Live charges by attempt: a gang ends with the last of them."""
        self._spans: dict[str, dict[int, tuple[int, int, int]]] = {}
        """GPUs, since and until by charge, of each queue with a budget."""
        self._windows_us: dict[str, int] = {}

    def apply(self, rows: MirrorRows) -> None:
        """Take changed rows; older state of the same ids is replaced."""
        if rows.definitions is not None:
            self.definitions = rows.definitions
            self.state.define(Definitions(*rows.definitions[1:]))
            self._watch_budgets()
        # Classes before jobs: the order of a line may ask for the GPUs of a gang.
        self.state.learn({row.class_id: row.request for row in rows.classes})
        self._apply_charges(rows.charges)
        if rows.usage is not None:
            self.state.lines.rate_users(rows.usage)
        if rows.node_holds is not None:
            self.state.hold_nodes(rows.node_holds)
        if rows.recent is not None:
            # In order of id, so that equal rows give equal states whatever order they came in.
            known = sorted(rows.recent.keys() & self.state.classes.keys())
            self.state.recent = tuple((self.state.classes[key], rows.recent[key]) for key in known)
        self._apply_inventory(rows)
        self._apply_jobs(rows.jobs)
        if rows.waiting:
            self.state.lines.add(rows.waiting)

    def snapshot(self, serial: int) -> Snapshot:
        """Give the present state as a value; equal rows give equal snapshots."""
        return snapshot_of(self.state, serial)

    def setting(self) -> Snapshot:
        """Give everything but the waiting jobs as a value."""
        return setting_of(self.state, serial=0)

    def class_ids(self) -> tuple[int, ...]:
        """Give the database ids of the snapshot's classes, in the order of their indexes."""
        return class_ids_of(self.state)

    def _apply_jobs(self, jobs: tuple[JobRow, ...]) -> None:
        # One reading may bring several states of a job; only the last one is true.
        # A job may come twice in one reading; the later row is the newer one.
        latest = {job.job_id: job for job in jobs}.values()
        for job in latest:
            if not job.waits:
                self.state.lines.remove(job.job_id)
            if job.state in HOLDING_STATES:
                # Its charges and devices come with the same reading, or came before.
                self.state.promised.discard(job.job_id)
        self.state.lines.add([_new_job(job) for job in latest if job.waits])

    def _apply_charges(self, charges: Sequence[ChargeRow]) -> None:
        for charge in charges:
            # Taken back as it was counted, since a row may come twice, or changed.
            # Out with the old row first, so that a row that is read twice counts once.
            if charge == self._charges.get(charge.charge_id):
                continue  # else it would look as if quota had come back
            before = self._charges.pop(charge.charge_id, None)
            if before is not None:
                self._count(before, -1)
            # Ended charges are only remembered where a budget counts them.
            if charge.is_live:
                self._charges[charge.charge_id] = charge
                self._count(charge, 1)
            self._note_span(charge)
        for queue in {charge.queue for charge in charges} & self._spans.keys():
            self._tell_spans(queue)

    def _watch_budgets(self) -> None:
        """Keep spans of the queues that have a budget now, and of no others."""
        self._windows_us = {
            queue.name: queue.budget.window_seconds * SECOND_US
            for queue in self.definitions.queues
            if queue.budget is not None
        }
        self._spans = {name: self._spans.get(name, {}) for name in self._windows_us}
        # Live ones are at hand; what ended before the budget came, the service reads once more.
        for charge in self._charges.values():
            self._note_span(charge)
        self.state.holdings.spans = {}
        for queue in self._spans:
            self._tell_spans(queue)

    def _note_span(self, charge: ChargeRow) -> None:
        spans = self._spans.get(charge.queue)
        if spans is not None and charge.resource == GPU:
            span = charge.amount, charge.reserved_us, charge.closed_us
            spans[charge.charge_id] = span

    def _tell_spans(self, queue: str) -> None:
        """Hand a queue's spans to the state, without those that ended a whole window ago.

        Now is not before the last release, so no clock is needed to know them.
        """
        spans = self._spans[queue]
        last_us = max((until_us for _, _, until_us in spans.values()), default=0)
        start_us = last_us - self._windows_us[queue]
        for key in [key for key, (_, _, until_us) in spans.items() if 0 < until_us <= start_us]:
            del spans[key]
        self.state.holdings.spans[queue] = tuple(spans.values())

    def _count(self, charge: ChargeRow, sign: int) -> None:
        """Count a charge in, or out again."""
        pair = (charge.flavor, charge.resource)
        self.state.charge(charge.queue, pair, sign * charge.amount)
        gangs = self._gangs.get(charge.attempt_id, 0) + sign
        self._gangs[charge.attempt_id] = gangs
        # The first charge of a gang brings it, the last one takes it away.
        is_edge = gangs == (1 if sign > 0 else 0)
        if not gangs:
            del self._gangs[charge.attempt_id]
        self.state.holdings.add(
            charge.queue,
            charge.user,
            jobs=sign if is_edge else 0,
            gpus=sign * charge.amount if charge.resource == GPU else 0,
        )

    def _apply_inventory(self, rows: MirrorRows) -> None:
        self._inventory.apply(rows.nodes, rows.devices)
        if rows.is_inventory_complete is not None:
            self.is_inventory_complete = rows.is_inventory_complete
        if rows.nodes or rows.devices or rows.is_inventory_complete is not None:
            self.state.move(*self._inventory.change(is_complete=self.is_inventory_complete))


_WANTED = attrgetter(*NewJob._fields)


def _new_job(job: JobRow) -> NewJob:
    return NewJob._make(_WANTED(job))
