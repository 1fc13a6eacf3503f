"""Queues, cohorts and flavors as admins define them, over REST and in `apply` files."""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from gateway.core.vocabulary import OrderPolicy, QueueState
from gateway.schemas.base import DnsLabel, Page, View, WireModel
from gateway.schemas.job_spec import TolerationSpec

# Whole first: strict mode tells 8 from "8" and neither becomes the other.
Quantity = int | Annotated[str, StringConstraints(min_length=1, max_length=32)]
"""A whole number in base units, or a Kubernetes quantity such as 500m or 64Gi."""


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


class QueueSpec(WireModel):
    """A leaf of the quota tree."""

    name: DnsLabel
    cohort: DnsLabel | None = None
    # 0 is allowed: whoever borrows with it comes after all others of the cohort.
    weight: int = Field(default=1, ge=0, le=1_000_000)
    state: QueueState = QueueState.OPEN
    order: OrderPolicy = OrderPolicy.PRIORITY
    priority_min: int = Field(default=-1_000_000_000, ge=-1_000_000_000, le=1_000_000_000)
    priority_max: int = Field(default=1_000_000_000, ge=-1_000_000_000, le=1_000_000_000)
    namespaces: tuple[str, ...] = ("*",)
    """Namespaces that may submit; ("*",) for all."""
    # "*" is no namespace here; the queue `default` serves whoever has none.
    default_for: tuple[str, ...] = ()
    """Namespaces whose default queue this is."""
    flavors: tuple[DnsLabel, ...] = ()
    """In order of preference; empty means all, by name."""
    quotas: tuple[QuotaSpec, ...] = ()


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


class QueuePage(Page):
    """All queues by name."""

    items: tuple[QueueView, ...]


class DefinitionSet(WireModel):
    """One `apply` document: everything by kind."""

    # Written by `export`, so that a file says by itself that it is none for kubectl.
    kind: Literal["TrainingGatewayConfig"] = "TrainingGatewayConfig"
    flavors: tuple[FlavorSpec, ...] = ()
    cohorts: tuple[CohortSpec, ...] = ()
    queues: tuple[QueueSpec, ...] = ()
