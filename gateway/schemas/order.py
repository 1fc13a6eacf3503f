"""What REST answers about order and shares: who comes when in a queue, who has how much of what."""

from typing import Literal

from gateway.core.vocabulary import Reason
from gateway.schemas.base import Page, Timestamp, View


class OrderEntry(View):
    """One job with its place; of another tenant's job only its size is told."""

    position: int
    """From 1."""
    job_id: str | None = None
    """None for another tenant's job, of which nothing but its size is told."""
    name: str = ""
    namespace: str = ""
    user: str = ""
    pods: int
    gpus: int
    rdma: int
    priority: int | None = None
    age: float | None = None
    """What waiting has added to the priority."""
    effective: float | None = None
    """Priority with the age; higher comes first."""
    user_usage: float | None = None
    """Decayed usage of the user as part of what there is; lower comes first (fair_users)."""
    slack_seconds: float | None = None
    """Until the latest start that makes the deadline; lower comes first (deadline)."""
    remaining_gpu_seconds: int | None = None
    """Expected GPU time less the time waited; lower comes first (shortest)."""
    priority_class: str = ""
    rank: int | None = None
    """Value of the priority class; it counts across queues."""
    submitted_at: Timestamp | None = None
    not_before_at: Timestamp | None = None
    waited_seconds: float | None = None
    request_class: int | None = None
    """Jobs of one number ask for the same."""
    reason: Reason | None = None
    """Why it waits."""
    barred: str = ""
    """What keeps it out whatever fits: its time, a cap, the budget, a pause."""


class OrderPage(Page):
    """A page of those who wait in a queue, first those who come next."""

    queue: str
    policy: str
    """Order policy of the queue."""
    blocking: str
    list_serial: int
    """Number of this order; the ETag. Another one says that somebody came, left or overtook."""
    cycle: int
    """Number of the last admission cycle."""
    as_of: Timestamp
    total: int
    """How many wait."""
    items: tuple[OrderEntry, ...]


class ShareRow(View):
    """One (flavor, resource) of a queue or cohort, in base units; None is no limit."""

    flavor: str
    resource: str
    nominal: int
    subtree: int | None
    """Own nominal with what the nodes below lend upwards."""
    used: int
    borrowed: int
    available: int | None
    """What may still be taken; negative after a cut."""
    entitlement: int | None
    """What its weight gives it of what its cohort can lend, beside what it keeps for itself."""


class ShareNode(View):
    """One queue or cohort of the tree."""

    name: str
    kind: Literal["queue", "cohort"]
    parent: str | None
    depth: int
    weight: int
    share: float
    """Of what its cohort can hold, over its weight, by the scarcest resource; lower comes first."""
    resource: str
    """The scarcest one."""
    rows: tuple[ShareRow, ...]


class SharesView(View):
    """Who has how much of what: every node after its parent, siblings by name."""

    nodes: tuple[ShareNode, ...]
