"""What REST answers, the SDK returns and the command line prints about jobs."""

from typing import Literal

from pydantic import Field

from gateway.core.vocabulary import (
    AttemptPhase,
    DeviceHealth,
    DeviceKind,
    EndReason,
    Guarantee,
    JobState,
    LiftKind,
    PairRule,
    Reason,
    Role,
)
from gateway.schemas.base import JsonObject, Page, Timestamp, View


class JobView(View):
    """One job as users see it."""

    id: str
    name: str
    namespace: str
    queue: str
    user: str
    priority: int
    priority_class: str = ""
    state: JobState
    # Worked out when read, from the job's queue and request class; see decision 0008.
    reason: Reason | None = None
    """Why it waits; None unless pending, held or reserved."""
    end_reason: EndReason | None = None
    message: str = ""
    # Attempts grow with requeues and never start again, so a name in the cluster is used once.
    attempt: int
    """Number of the present or last attempt, from 1; 0 before the first."""
    pods: int
    gpus: int
    rdma: int
    submitted_at: Timestamp
    reserved_at: Timestamp | None = None
    started_at: Timestamp | None = None
    """All pods ready."""
    ended_at: Timestamp | None = None
    not_before_at: Timestamp | None = None
    deadline_at: Timestamp | None = None
    # What the user said, not what the gateway learned: orders and estimates begin with it.
    expected_seconds: int | None = None
    exit_code: int | None = None
    guarantee: Guarantee | None = None
    version: int
    labels: dict[str, str] = Field(default_factory=dict)


class JobDetail(JobView):
    """A job with what was submitted."""

    spec: JsonObject


class JobPage(Page):
    """A page of jobs, newest first."""

    items: tuple[JobView, ...]


class EventView(View):
    """One event of the append-only history."""

    id: int
    at: Timestamp
    job_id: str | None = None
    kind: str
    actor: str
    detail: str = ""
    data: JsonObject = Field(default_factory=dict)


class EventPage(Page):
    """A page of events, oldest first."""

    items: tuple[EventView, ...]


class DeviceRef(View):
    """One device that a pod holds."""

    kind: DeviceKind
    ordinal: int
    name: str
    """mlx5_0 or the like for a NIC, gpu0 or the like for a GPU."""
    # As the driver names it; a device plugin gives it to the container under this name.
    uuid: str = ""
    pci_address: str = ""
    numa: int = -1
    rail: int = -1


class AssignmentView(View):
    """One pod's node and devices."""

    attempt: int
    pod_set: str
    index: int
    # Rank in torch.distributed's sense: Master 0, workers behind it by index.
    rank: int
    node: str
    devices: tuple[DeviceRef, ...]
    pair: PairRule
    guarantee: Guarantee


class AttemptView(View):
    """One try to run the gang."""

    number: int
    phase: AttemptPhase
    object_name: str
    object_uid: str = ""
    end_reason: EndReason | None = None
    message: str = ""
    # As the kubelet reports it: 137 is 128 + SIGKILL, which mostly means that memory ran out.
    exit_code: int | None = None
    reserved_at: Timestamp
    started_at: Timestamp | None = None
    ended_at: Timestamp | None = None


class AssignmentPage(Page):
    """The pods of one attempt by rank."""

    items: tuple[AssignmentView, ...]


class AttemptPage(Page):
    """A job's attempts by number."""

    items: tuple[AttemptView, ...]


class CauseView(View):
    """One cause of waiting with its numbers."""

    reason: Reason
    detail: str
    count: int = 0
    total: int = 0


class QuotaStepView(View):
    """One node on the quota path."""

    node: str
    flavor: str
    resource: str
    used: int
    nominal: int
    available: int
    requested: int


class LiftView(View):
    """One thing that stands in a job's way, and by how much it must give."""

    kind: LiftKind
    target: str = ""
    """Queue, node of the quota tree, or node of the fleet."""
    flavor: str = ""
    resource: str = ""
    amount: int = 0
    """A raise of quotas and limits, what comes free on a node; of the others the new value."""
    ordinals: tuple[int, ...] = ()
    """Devices that come free."""
    word: str = ""
    """A pair rule, or the name of a cap."""


class ExplainView(View):
    """The complete answer to "why is my job waiting?" (or what became of it)."""

    job_id: str
    name: str
    state: JobState
    reason: Reason | None
    summary: str
    """One sentence."""
    causes: tuple[CauseView, ...] = ()
    quota_path: tuple[QuotaStepView, ...] = ()
    limiting: str = ""
    unblock: tuple[str, ...] = ()
    """What would let it start in the next cycle; each sentence is enough by itself."""
    lifts: tuple[tuple[LiftView, ...], ...] = ()
    """The same in numbers, one set for each sentence."""
    position: int | None = None
    """Place in its queue, from 1; None unless pending."""
    jobs_ahead: int | None = None
    gpus_ahead: int | None = None
    """GPUs that the jobs ahead ask for in all."""
    estimate: str = ""
    """When it may start and on what basis, or that no basis exists."""
    # With it two answers can be told to speak of one state, and an old one from a new one.
    serial: int
    """Number of the cycle whose state this describes."""
    decided_at: Timestamp | None = None


class TolerationView(View):
    """One toleration of a pod."""

    key: str
    operator: str
    value: str
    effect: str


class PlannedPod(View):
    """Where a pod would run."""

    pod_set: str
    index: int
    rank: int
    node: str
    flavor: str
    devices: tuple[DeviceRef, ...]
    tolerations: tuple[TolerationView, ...] = ()
    """Those that its pod would be given for the flavor's sake."""


class ChargeView(View):
    """What an admission takes of a queue's quota."""

    flavor: str
    resource: str
    amount: int


class PlanView(View):
    """Answer of a dry run: whether it would start now, where, else why not; nothing is stored."""

    spec: JsonObject
    queue: str
    pods: int
    gpus: int
    rdma: int
    starts_now: bool = False
    """Whether the next cycle would start it, those before it in the order served first."""
    summary: str = ""
    """One sentence."""
    placements: tuple[PlannedPod, ...] = ()
    """By rank; empty when it would not start."""
    charges: tuple[ChargeView, ...] = ()
    reason: Reason | None = None
    """Why it would wait; the fields below say it in full, as explain does."""
    causes: tuple[CauseView, ...] = ()
    quota_path: tuple[QuotaStepView, ...] = ()
    limiting: str = ""
    unblock: tuple[str, ...] = ()
    lifts: tuple[tuple[LiftView, ...], ...] = ()
    position: int | None = None
    """Place that it would take in its queue, from 1; None for a held job."""
    jobs_ahead: int | None = None
    gpus_ahead: int | None = None


class BatchItem(View):
    """Outcome of one job of a batch: either `job` or `error`."""

    index: int
    job: JobView | None = None
    is_new: bool = False
    error: JsonObject | None = None
    """A problem document."""


class BatchAnswer(View):
    """Outcomes in the order of submission."""

    items: tuple[BatchItem, ...]


class NodeView(View):
    """One node of the fleet."""

    id: int
    name: str
    machine_type: str
    health: DeviceHealth
    is_present: bool
    labels: dict[str, str]
    gpus_total: int
    gpus_free: int
    rdma_total: int
    rdma_free: int
    # Millicores and bytes, as quota counts them: no reader has to parse quantities.
    cpu_millis_total: int
    cpu_millis_free: int
    memory_bytes_total: int
    memory_bytes_free: int
    version: int


class NodePage(Page):
    """A page of nodes by name."""

    items: tuple[NodeView, ...]


class HolderView(View):
    """Who holds a device."""

    job_id: str
    job_name: str
    namespace: str
    pod_set: str
    index: int


class DeviceView(View):
    """One GPU or NIC, and who holds it."""

    id: int
    node: str
    kind: DeviceKind
    ordinal: int
    name: str
    uuid: str = ""
    pci_address: str = ""
    switch: int = -1
    # -1 is unknown, as in sysfs.
    numa: int = -1
    rail: int = -1
    health: DeviceHealth
    is_present: bool
    # In use by pods that are not ours, so it is free for nobody here.
    is_foreign: bool
    is_free: bool
    holder: HolderView | None = None
    version: int


class DevicePage(Page):
    """A page of devices by node, kind and ordinal."""

    items: tuple[DeviceView, ...]


class DeviceHoldView(View):
    """One time that a device was held; other tenants' jobs are told by their queue alone."""

    queue: str
    holder: HolderView | None = None
    attempt: int | None = None
    reserved_at: Timestamp
    # None while it is held.
    freed_at: Timestamp | None = None
    end_reason: EndReason | None = None


class DeviceHistoryPage(Page):
    """Who held a device, the newest first."""

    items: tuple[DeviceHoldView, ...]


class RoomForSize(View):
    """How many pods of one size the free GPUs have room for."""

    gpus: int
    # What the free GPUs add up to; the two below can only be less.
    ideal: int
    fitting: int
    # With a NIC for each GPU under the same PCIe switch.
    aligned: int


class FragmentationView(View):
    """How far the free GPUs would go, pods of the smallest size first."""

    items: tuple[RoomForSize, ...]


class WhoAmI(View):
    """The caller as the gateway sees it."""

    name: str
    role: Role
    namespaces: tuple[str, ...]
    """Allowed namespaces; ("*",) for all."""


class Health(View):
    """Answer of healthz and readyz."""

    status: Literal["ok", "unavailable"]
    checks: dict[str, str] = Field(default_factory=dict)
