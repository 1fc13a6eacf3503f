"""What admins define: flavors, cohorts, queues and their quotas. Few, so dataclasses."""

from dataclasses import dataclass

from gateway.core.resources.node_rules import Toleration
from gateway.core.vocabulary import UNLIMITED, QueueState


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
    borrowing_limit: int = UNLIMITED
    """Most that may be taken from others."""
    lending_limit: int = UNLIMITED
    """Most of the nominal that others may take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cohort:
    """An inner node of the tree."""

    name: str
    parent: str | None = None
    weight: int = 1
    quotas: tuple[Quota, ...] = ()


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
