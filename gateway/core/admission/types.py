"""What goes into one admission cycle and what comes out, as values."""

from dataclasses import dataclass

from gateway.core.admission.unblock import Lifts
from gateway.core.devices.fleet import Fleet
from gateway.core.jobs.columns import WaitingJobs
from gateway.core.jobs.request import RequestClass
from gateway.core.queues.definitions import Cohort, Flavor, Queue
from gateway.core.vocabulary import Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What live reservations of a queue use of one (flavor, resource), in base units."""

    queue: str
    flavor: str
    resource: str
    amount: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """What one user's gangs hold in one queue right now; caps are counted against it."""

    queue: str
    user: str
    jobs: int
    gpus: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """GPUs that a queue with a budget held from one instant to another."""

    queue: str
    gpus: int
    since_us: int
    until_us: int = 0
    """0 while they are held."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UserUsage:
    """A user's decayed usage in one queue, in 1/2^20 of capacity; all at one landmark."""

    queue: str
    user: str
    usage: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeHold:
    """Nodes kept free for one starving job of a flavor until it starts, leaves or loses quota."""

    flavor: str
    job_id: int
    node_ids: tuple[int, ...]
    """Sorted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Everything one decision depends on."""

    serial: int
    """Number of the state it was taken from; stored with each answer."""
    queues: tuple[Queue, ...]
    cohorts: tuple[Cohort, ...]
    flavors: tuple[Flavor, ...]
    usage: tuple[Usage, ...]
    waiting: WaitingJobs
    fleet: Fleet
    held: tuple[Held, ...] = ()
    spans: tuple[Span, ...] = ()
    """Those that reach into the present window of their queue's budget."""
    user_usage: tuple[UserUsage, ...] = ()
    node_holds: tuple[NodeHold, ...] = ()
    recent: tuple[tuple[RequestClass, int], ...] = ()
    """Request classes of late and how many jobs of each; without any, those who wait count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policies:
    """Policies in force; the order inside a queue is named by the queue itself."""

    fairness: str = "dominant_share"
    placement: str = "pack"
    starvation_after_seconds: int = 1800
    """How long nodes alone may keep a job waiting before some are held for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodPlacement:
    """One pod's node and devices; bits are ordinals of that node's machine type."""

    pod_set: str
    index: int
    node_id: int
    # Ordinals instead of device rows: a plan for thousands of pods stays small until it is written.
    gpu_mask: int
    nic_mask: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """What an admission adds to its queue's usage."""

    flavor: str
    resource: str
    amount: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Admit:
    """A whole gang gets its place."""

    job_id: int
    version: int
    queue: str
    class_index: int
    placements: tuple[PodPlacement, ...]
    """Every pod of the gang, ordered by pod set (Master first), then index."""
    charges: tuple[Charge, ...]
    flavors: tuple[tuple[str, str], ...] = ()
    """(pod set, flavor), by pod set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """One cause of waiting, with its numbers, in words for people."""

    reason: Reason
    detail: str
    count: int = 0
    """Nodes (or jobs) concerned; 0 where counting makes no sense."""
    total: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaStep:
    """One node on the quota path, for one (flavor, resource)."""

    node: str
    flavor: str
    resource: str
    used: int
    nominal: int
    available: int
    requested: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassHold:
    """Why one request class of one queue does not start: all causes found, not the first."""

    queue: str
    class_index: int
    """Index into the snapshot's classes."""
    reason: Reason
    causes: tuple[Cause, ...]
    quota_path: tuple[QuotaStep, ...] = ()
    limiting: str = ""
    """Quota node that binds, when quota is the reason."""
    unblock: tuple[str, ...] = ()
    """What would admit it, in words; each is complete by itself."""
    lifts: tuple[Lifts, ...] = ()
    """The same in numbers, one for each of `unblock`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """One waiting job stays waiting."""

    job_id: int
    version: int
    reason: Reason
    queue: str
    class_index: int


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueHold:
    """A queue that admits nobody now, or nobody of one user."""

    queue: str
    user: str = ""
    """Empty for everybody."""
    reason: Reason
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CyclePlan:
    """One pass: each waiting job is in exactly one of `admits` and `holds`."""

    serial: int
    admits: tuple[Admit, ...]
    # Only a plan of a whole snapshot names everybody; a pass tells classes.
    holds: tuple[Hold, ...]
    class_holds: tuple[ClassHold, ...]
    """One for each (queue, class) that has at least one hold."""
    queue_holds: tuple[QueueHold, ...] = ()
    node_holds: tuple[NodeHold, ...] = ()
    """All who hold nodes from now on, by flavor."""
    next_wake_at_us: int | None = None
    """Earliest instant at which a plan may differ though nothing but time changed."""
    is_complete: bool = True
    """False when candidates, or reasons worth telling, are left for the next pass."""
