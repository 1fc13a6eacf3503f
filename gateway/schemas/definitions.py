"""What admins define, over REST and in `apply` files."""

from typing import Literal

from pydantic import Field

from gateway.core.vocabulary import Blocking, OrderPolicy, QueueState, WhenCanBorrow
from gateway.schemas.base import DnsLabel, Page, View, WireModel
from gateway.schemas.job_spec import TolerationSpec
from gateway.schemas.queue_rules import (
    AgeingSpec,
    BudgetSpec,
    CapsSpec,
    DatedChangeSpec,
    Quantity,
)


class QuotaSpec(WireModel):
    """One (flavor, resource) row; None means no limit."""

    flavor: DnsLabel
    resource: str = Field(min_length=1, max_length=253)
    # 0 is a quota too: everything is borrowed. A resource without a row in the whole tree is free.
    nominal: Quantity
    borrowing_limit: Quantity | None = None
    lending_limit: Quantity | None = None


class FlavorSpec(WireModel):
    """A kind of node by labels."""

    name: DnsLabel
    node_labels: dict[str, str] = Field(default_factory=dict)
    tolerations: tuple[TolerationSpec, ...] = ()


class CohortSpec(WireModel):
    """An inner node of the quota tree."""

    name: DnsLabel
    parent: DnsLabel | None = None
    weight: int = Field(default=1, ge=0, le=1_000_000)
    quotas: tuple[QuotaSpec, ...] = ()
    changes: tuple[DatedChangeSpec, ...] = ()
    """Quota rows that change at an instant."""


class PriorityClassSpec(WireModel):
    """A named level that counts across queues, unlike a job's own number."""

    name: DnsLabel
    value: int = Field(ge=-1_000_000_000, le=1_000_000_000)
    """Higher runs sooner; a job without a class counts as 0."""


class QueueSpec(WireModel):
    """A leaf of the quota tree."""

    name: DnsLabel
    cohort: DnsLabel | None = None
    # 0 is allowed: whoever borrows with it comes after all others of the cohort.
    weight: int = Field(default=1, ge=0, le=1_000_000)
    state: QueueState = QueueState.OPEN
    order: str = Field(default=OrderPolicy.PRIORITY.value, min_length=1, max_length=32)
    """Order policy: priority, fair_users, deadline, shortest, or one that was added by name."""
    ageing: AgeingSpec = AgeingSpec()
    blocking: Blocking = Blocking.BEST_EFFORT
    when_can_borrow: WhenCanBorrow = WhenCanBorrow.BORROW
    priority_min: int = Field(default=-1_000_000_000, ge=-1_000_000_000, le=1_000_000_000)
    priority_max: int = Field(default=1_000_000_000, ge=-1_000_000_000, le=1_000_000_000)
    namespaces: tuple[str, ...] = ("*",)
    """Namespaces that may submit; ("*",) for all."""
    # "*" is no namespace here; the queue `default` serves whoever has none.
    default_for: tuple[str, ...] = ()
    """Namespaces whose default queue this is."""
    flavors: tuple[DnsLabel, ...] = ()
    """In order of preference; empty means all, by name."""
    priority_classes: tuple[DnsLabel, ...] = ()
    """Those that its jobs may have; empty means none."""
    quotas: tuple[QuotaSpec, ...] = ()
    changes: tuple[DatedChangeSpec, ...] = ()
    """Quota rows that change at an instant."""
    caps: CapsSpec = CapsSpec()
    budget: BudgetSpec | None = None


class UsageRow(View):
    """What a queue uses of one (flavor, resource), in base units."""

    flavor: str
    resource: str
    nominal: int
    used: int
    borrowed: int
    available: int


class FlavorView(FlavorSpec):
    """A stored flavor."""

    version: int


class CohortView(CohortSpec):
    """A stored cohort."""

    version: int


class PriorityClassView(PriorityClassSpec):
    """A stored priority class."""

    version: int


class QueueView(QueueSpec):
    """A stored queue with its counts."""

    version: int
    pending: int = 0
    held: int = 0
    active: int = 0
    usage: tuple[UsageRow, ...] = ()


class FlavorPage(Page):
    """All flavors by name."""

    items: tuple[FlavorView, ...]


class CohortPage(Page):
    """All cohorts by name."""

    items: tuple[CohortView, ...]


class PriorityClassPage(Page):
    """All priority classes by name."""

    items: tuple[PriorityClassView, ...]


class QueuePage(Page):
    """All queues by name."""

    items: tuple[QueueView, ...]


class DefinitionSet(WireModel):
    """One `apply` document: everything by kind."""

    # Written by `export`, so that a file says by itself that it is none for kubectl.
    kind: Literal["TrainingGatewayConfig"] = "TrainingGatewayConfig"
    flavors: tuple[FlavorSpec, ...] = ()
    cohorts: tuple[CohortSpec, ...] = ()
    priority_classes: tuple[PriorityClassSpec, ...] = ()
    queues: tuple[QueueSpec, ...] = ()
