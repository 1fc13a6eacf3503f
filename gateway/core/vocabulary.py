"""The words of the product as closed lists: states, events, reasons, rules, guarantees.

The only part of the core that the wire schemas, the manifest reader and the SDK may import, so it
must stay free of numpy and of every other module of this package.
"""

from enum import StrEnum
from typing import Final


class JobState(StrEnum):
    """Where a job stands. Devices are held from RESERVED until STOPPING is left."""

    PENDING = "pending"
    """Waits in its queue."""
    HELD = "held"
    """Waits, and is not considered until it is released."""
    RESERVED = "reserved"
    """Its devices are held in the database; nothing of this attempt need exist in the cluster."""
    LAUNCHING = "launching"
    """Its object was unsuspended; not all pods are ready yet."""
    RUNNING = "running"
    """Every pod of the gang was seen ready."""
    STOPPING = "stopping"
    """An outcome is stored; pods may still be alive, so the devices stay held."""
    SUCCEEDED = "succeeded"
    """The training succeeded. Terminal."""
    FAILED = "failed"
    """The training failed, or could not be started. Terminal."""
    CANCELLED = "cancelled"
    """A user cancelled it. Terminal."""


# STOPPING is neither ended nor waiting: its outcome is known, but its devices are not free yet.
TERMINAL_STATES: Final = frozenset({JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED})
WAITING_STATES: Final = frozenset({JobState.PENDING, JobState.HELD})
HOLDING_STATES: Final = frozenset(
    {JobState.RESERVED, JobState.LAUNCHING, JobState.RUNNING, JobState.STOPPING}
)
"""States in which the job's devices are held."""


class JobEvent(StrEnum):
    """What can happen to a job; `core.jobs.machine` says what follows."""

    HOLD = "hold"
    RELEASE = "release"
    ADMIT = "admit"
    UNRESERVE = "unreserve"
    """A reservation is withdrawn before its launch intent was acted on."""
    UNSUSPEND = "unsuspend"
    """The cluster was told to start the gang."""
    READY = "ready"
    """All pods of the gang are ready."""
    STOP = "stop"
    """Begin to stop, with a stored outcome."""
    GONE = "gone"
    """All pods are gone, so the stored outcome takes effect and the devices are freed."""
    CANCEL_WAITING = "cancel_waiting"
    """Cancelled while nothing of it existed."""
    FAIL_WAITING = "fail_waiting"
    """Ended while waiting, for example by its queue timeout."""


# Stored in the same transaction that enters STOPPING: a gateway that dies meanwhile finds the
# outcome and goes on, instead of deciding it a second time from what is left of the pods.
class StopOutcome(StrEnum):
    """What a stopping job becomes once its pods are gone."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    REQUEUED = "requeued"
    """Back to pending, with the next attempt."""
    HELD = "held"
    """To held, with the next attempt."""


# Written down before each call, never after: after a crash the phase says which call may have been
# sent, and each of these calls can be repeated.
class AttemptPhase(StrEnum):
    """The steps of one launch, in order; each is stored before the next is tried."""

    INTENDED = "intended"
    """Reserved and to be launched; no call was sent, or its answer was lost."""
    CREATED = "created"
    """The suspended object exists and its UID is stored."""
    HELD_IN_CLUSTER = "held_in_cluster"
    """The enforcement back end holds the devices (a formality for advisory)."""
    UNSUSPENDED = "unsuspended"
    """The object was told to start; pods appear gated."""
    OPEN = "open"
    """Every pod's gate was opened onto its assignment."""
    CLOSED = "closed"
    """Nothing of it is alive; devices are freed."""


# Values are the public codes of `explain`, metrics and dashboards: new ones may come, none may be
# renamed. Some are not given yet, and are listed so that clients can know them in time.
class Reason(StrEnum):
    """Why a job waits, or why an attempt ended. A closed list."""

    HELD = "Held"
    NOT_BEFORE = "NotBefore"
    DEPENDENCY_PENDING = "DependencyPending"
    QUEUE_PAUSED = "QueuePaused"
    OVER_QUOTA = "OverQuota"
    OVER_BORROWING_LIMIT = "OverBorrowingLimit"
    OVER_BUDGET = "OverBudget"
    OVER_CAP = "OverCap"
    BEHIND_FAIR_SHARE = "BehindFairShare"
    BEHIND_PRIORITY = "BehindPriority"
    GANG_DOES_NOT_FIT = "GangDoesNotFit"
    FRAGMENTED_DEVICES = "FragmentedDevices"
    NO_ALIGNED_DEVICES = "NoAlignedDevices"
    NODES_UNAVAILABLE = "NodesUnavailable"
    RESERVED_FOR_OTHER = "ReservedForOther"
    WAITING_FOR_PREEMPTION = "WaitingForPreemption"
    RETRY_PAUSE = "RetryPause"
    LAUNCH_THROTTLED = "LaunchThrottled"
    CLUSTER_UNREACHABLE = "ClusterUnreachable"
    GUARANTEE_UNAVAILABLE = "GuaranteeUnavailable"
    NEVER_FITS = "NeverFits"
    POLICY_DENIED = "PolicyDenied"
    QUARANTINED = "Quarantined"
    NOT_REACHED = "NotReached"


class LiftKind(StrEnum):
    """What stands in a job's way and can be changed; a set of them lets it start."""

    QUOTA = "quota"
    """Quota of a node of the tree, raised by an amount."""
    BORROWING_LIMIT = "borrowing_limit"
    """Borrowing limit of a node of the tree, raised by an amount."""
    CAP = "cap"
    """A cap of a queue, set to an amount."""
    BUDGET = "budget"
    """Budget of a queue, set to so many GPU-seconds a window."""
    RESUME = "resume"
    """A paused queue is opened."""
    RELEASE = "release"
    """The job is held or set aside, and is released."""
    TIME = "time"
    """An instant has come, in microseconds since the epoch."""
    BLOCKING = "blocking"
    """A strict queue becomes best_effort."""
    PRIORITY = "priority"
    """The job's number becomes this one."""
    ORDER = "order"
    """The job comes before all others that wait: so many others are held back."""
    TOPOLOGY = "topology"
    """Pods need not share one value of a node label any more; it is only preferred."""
    SLICES = "slices"
    """Slices of the gang need not share one value of a node label any more."""
    ROOM = "room"
    """Something in use on a node comes free: devices by ordinal, or an amount."""
    HEALTH = "health"
    """A node is back in service."""
    PAIR = "pair"
    """The job accepts a looser pair rule."""
    LAUNCHES = "launches"
    """Gangs that are reserved already have been launched."""


class EndReason(StrEnum):
    """Why an attempt or a job ended."""

    SUCCEEDED = "Succeeded"
    REPLICA_FAILED = "ReplicaFailed"
    """A replica exited with a failure."""
    REJECTED_BY_CLUSTER = "RejectedByCluster"
    """The cluster refused the object for good (400, 403, 422)."""
    DELETED_EXTERNALLY = "DeletedExternally"
    """The object was deleted behind the gateway's back."""
    START_TIMEOUT = "StartTimeout"
    RUN_TIMEOUT = "RunTimeout"
    QUEUE_TIMEOUT = "QueueTimeout"
    TOO_MANY_RESTARTS = "TooManyRestarts"
    CANCELLED = "Cancelled"
    REQUEUED = "Requeued"
    FOREIGN_OBJECT = "ForeignObject"
    """An object of that name exists that is not ours."""
    GANG_LOST = "GangLost"
    """Pods or processes vanished without a result."""


class PairRule(StrEnum):
    """How near each GPU's NIC must be, from strict to free."""

    SWITCH = "switch"
    """Under the same PCIe switch."""
    NUMA = "numa"
    """On the same NUMA node."""
    NODE = "node"
    """On the same node (always true for one pod)."""
    NONE = "none"
    """Nobody asked."""


class PartitionRule(StrEnum):
    """Whether the GPUs of a pod must be one NVLink partition of their machine."""

    HONOUR = "honour"
    """They are one, or the node does not fit."""
    PREFER = "prefer"
    """One where one is free."""
    NONE = "none"
    """Nobody asked."""


class Guarantee(StrEnum):
    """What the cluster enforces of a reservation, strongest first."""

    HELD_IN_CLUSTER = "held_in_cluster"
    ENFORCED_AT_START = "enforced_at_start"
    NODE_EXCLUSIVE = "node_exclusive"
    ADVISORY = "advisory"


class DeviceKind(StrEnum):
    """Kinds of device that are reserved one by one."""

    GPU = "gpu"
    RDMA = "rdma"


class DeviceHealth(StrEnum):
    """Whether new placements may use a device or node."""

    HEALTHY = "healthy"
    CORDONED = "cordoned"
    UNHEALTHY = "unhealthy"


class ReplicaType(StrEnum):
    """Pod sets of a PyTorchJob."""

    MASTER = "Master"
    WORKER = "Worker"


class QueueState(StrEnum):
    """Whether a queue admits."""

    OPEN = "open"
    PAUSED = "paused"


class Role(StrEnum):
    """What a caller may do."""

    USER = "user"
    ADMIN = "admin"


class BackendName(StrEnum):
    """Where gangs are launched."""

    LOCAL = "local"
    SIMULATED = "simulated"
    KUBEFLOW = "kubeflow"


class OrderPolicy(StrEnum):
    """Order inside a queue."""

    PRIORITY = "priority"
    """Higher number first, then older; waiting may raise the number."""
    FAIR_USERS = "fair_users"
    """The user who used least lately first, then as by priority."""
    DEADLINE = "deadline"
    """The latest possible start that comes first; those that can no longer make it afterwards."""
    SHORTEST = "shortest"
    """The least expected GPU-time first, more slowly passed the longer one waits."""


class Blocking(StrEnum):
    """What a candidate that does not fit means for those behind it in its queue."""

    STRICT = "strict"
    """Nobody passes it."""
    BEST_EFFORT = "best_effort"
    """Others may pass."""


class WhenCanBorrow(StrEnum):
    """Whether a flavor that fits only by borrowing is taken, or the next one is tried first."""

    BORROW = "borrow"
    TRY_NEXT_FLAVOR = "try_next_flavor"


LABEL_PREFIX: Final = "training-gateway.io/"
"""Prefix of every label and annotation of the product."""
MACHINE_TYPE_LABEL: Final = LABEL_PREFIX + "machine-type"
"""Node label by which a site names a node's machine type."""
INSTANCE_TYPE_LABEL: Final = "node.kubernetes.io/instance-type"
"""Node label by which clouds name it."""
MOST_DEVICES: Final = 62
"""Devices of one kind on a node: as many as a mask holds whose sign stays out of bit counts."""
ENVIRONMENT_PREFIX: Final = "TRAINING_GATEWAY_"
"""Prefix of every environment variable of the product."""
# KEP-3521: a gate can be taken off a pod but never put on later, so the template carries it from
# the start; until it goes, the scheduler does not even look at the pod.
SCHEDULING_GATE: Final = LABEL_PREFIX + "reservation"
"""Scheduling gate that keeps each pod from starting before its devices are assigned."""
# Also the largest amount that a pod may ask for, so that every request can be compared with it.
UNLIMITED: Final = 2**62
"""An amount that stands for "no limit"; small enough that two of them do not overflow 64 bits."""
