"""What admins define: flavors, cohorts, queues and their quotas. Few, so dataclasses."""

from dataclasses import dataclass

from gateway.core.resources.node_rules import Toleration
from gateway.core.vocabulary import (
    UNLIMITED,
    Blocking,
    OrderPolicy,
    QueueState,
    WhenCanBorrow,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Flavor:
    """A kind of node by labels; quota counts per (flavor, resource)."""

    name: str
    node_labels: tuple[tuple[str, str], ...] = ()
    """Sorted; empty matches every node."""
    tolerations: tuple[Toleration, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """One (flavor, resource) row of a queue or cohort, in the resource's base unit."""

    flavor: str
    resource: str
    nominal: int
    # A number instead of None: the tree compares these in its innermost loops.
    borrowing_limit: int = UNLIMITED
    """Most that may be taken from others."""
    lending_limit: int = UNLIMITED
    """Most of the nominal that others may take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DatedChange:
    """A quota row that takes new values at one instant; None leaves a value as it was."""

    at_us: int
    flavor: str
    resource: str
    nominal: int | None = None
    borrowing_limit: int | None = None
    lending_limit: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Caps:
    """Plain numbers that a queue does not go beyond, whatever its quota allows."""

    queued_jobs: int = UNLIMITED
    """Waiting jobs; a further submit is refused."""
    running_jobs: int = UNLIMITED
    """Gangs that hold devices at the same time."""
    gpus_per_job: int = UNLIMITED
    user_queued_jobs: int = UNLIMITED
    user_running_jobs: int = UNLIMITED
    user_gpus: int = UNLIMITED
    """GPUs that one user's gangs hold at the same time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """GPU time that a queue may use in each window; held GPUs count from reservation to release."""

    gpu_seconds: int
    window_seconds: int
    starts_us: int = 0
    """Start of one window; the others follow before and after it without gap."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ageing:
    """How much waiting raises a job's number inside its queue."""

    per_hour: int = 0
    # In points of priority, like `per_hour`: 0 with a rate stands for a job that never gains any.
    cap: int = 0
    """Most that waiting adds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cohort:
    """An inner node of the tree."""

    name: str
    parent: str | None = None
    weight: int = 1
    quotas: tuple[Quota, ...] = ()
    changes: tuple[DatedChange, ...] = ()
    """By instant."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """A leaf of the tree. Without any quota row in its root a resource is not counted."""

    name: str
    cohort: str | None = None
    weight: int = 1
    state: QueueState = QueueState.OPEN
    quotas: tuple[Quota, ...] = ()
    flavors: tuple[str, ...] = ()
    """Flavors in order of preference; empty means all, by name."""
    changes: tuple[DatedChange, ...] = ()
    """By instant."""
    # A name that nobody registered is refused when the lines are laid out.
    order: OrderPolicy | str = OrderPolicy.PRIORITY
    """Name of the order policy; a third party may have added one."""
    ageing: Ageing = Ageing()
    blocking: Blocking = Blocking.BEST_EFFORT
    when_can_borrow: WhenCanBorrow = WhenCanBorrow.BORROW
    caps: Caps = Caps()
    budget: Budget | None = None
