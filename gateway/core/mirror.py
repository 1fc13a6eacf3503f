"""The one mutable place of the core: arrays changed by applying rows that the database changed.

Disposable: an empty mirror that is given every row decides exactly what a long-lived one decides.
Applying a row twice is harmless. Nothing here asks for rows; the service brings them.
"""

from typing import NamedTuple

from gateway.core.admission import Snapshot
from gateway.core.jobs.request import RequestClass
from gateway.core.queues.definitions import Cohort, Flavor, Queue
from gateway.core.resources.node_rules import Taint
from gateway.core.vocabulary import DeviceHealth, DeviceKind, JobState


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


class ClassRow(NamedTuple):
    """A request class under its database id."""

    class_id: int
    request: RequestClass


class NodeRow(NamedTuple):
    """A node; amounts in base units, `total` and `free` by resource name (no gpu, no rdma)."""

    node_id: int
    name: str
    machine_type: str
    health: DeviceHealth
    is_present: bool
    labels: tuple[tuple[str, str], ...]
    taints: tuple[Taint, ...]
    total: dict[str, int]
    free: dict[str, int]


class DeviceRow(NamedTuple):
    """A device with its place; `units_free` of `units_total` are not reserved by us."""

    device_id: int
    node_id: int
    kind: DeviceKind
    ordinal: int
    switch: int
    numa: int
    rail: int
    nvlink_group: int
    health: DeviceHealth
    is_present: bool
    is_foreign: bool
    """Somebody else uses it."""
    units_total: int
    units_free: int


class ChargeRow(NamedTuple):
    """What one live or ended reservation uses of one quota pair."""

    charge_id: int
    queue: str
    flavor: str
    resource: str
    amount: int
    is_live: bool


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

    def apply(self, rows: MirrorRows) -> None:
        """Take changed rows; older state of the same ids is replaced."""

    def snapshot(self, serial: int) -> Snapshot: ...
