"""What a gang adds to its user's decayed usage, in queues that order by it.

At reservation it counts as if it had run for as long as it is expected to, so that a user cannot
start many gangs before the first of them counts. At release that is taken back, and what was really
used counts instead.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from gateway.core.admission import Charge
from gateway.core.devices.fleet import Fleet
from gateway.core.mirror import Mirror
from gateway.core.policies.decay import accrued, faded, part_of
from gateway.core.resources import GPU, RDMA
from gateway.core.vocabulary import OrderPolicy
from gateway.db.engine import Row, Writer
from gateway.db.usage import UsageNote, note_usage

SECOND_US = 1_000_000
EXPECTED_SECONDS = 3600
"""Assumed of a job that does not say how long it runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageTerms:
    """How usage is counted at present."""

    queues: frozenset[str] = frozenset()
    """Those that order by it; nobody else's is counted."""
    capacity: Mapping[str, int]
    """What the whole fleet has, in base units."""
    half_life_us: int

    def part_of(self, queue: str, charges: Iterable[Charge]) -> int:
        """Give the part of the fleet that a gang takes, in 1/2^40; 0 where nobody counts it."""
        if queue not in self.queues:
            return 0
        amounts: dict[str, int] = {}
        for charge in charges:
            amounts[charge.resource] = amounts.get(charge.resource, 0) + charge.amount
        return part_of(amounts, self.capacity)

    def entry_of(self, part: int, expected_seconds: int) -> int:
        """Give what a gang counts at once."""
        return accrued(part, (expected_seconds or EXPECTED_SECONDS) * SECOND_US, self.half_life_us)


def terms_of(mirror: Mirror, half_life_seconds: int) -> UsageTerms:
    """Give the terms under the definitions and the fleet as they are known."""
    return UsageTerms(
        queues=frozenset(
            queue.name
            for queue in mirror.definitions.queues
            if queue.order == OrderPolicy.FAIR_USERS
        ),
        capacity=capacity_of(mirror.state.scene.fleet),
        half_life_us=half_life_seconds * SECOND_US,
    )


def capacity_of(fleet: Fleet) -> dict[str, int]:
    """Give what there is of each resource, whether in use or out of order or not."""
    totals = dict(zip(fleet.resources, fleet.total.sum(axis=0).tolist(), strict=True))
    for name, masks in ((GPU, fleet.gpu_all), (RDMA, fleet.nic_all)):
        totals[name] = sum(mask.bit_count() for mask in masks.tolist())
    return totals


def settle_usage(
    writer: Writer, job: Row, attempt: Row, at_us: int, half_life_seconds: int
) -> None:
    """Count what a gang that is freed really used, in place of what it counted at the start."""
    part, half_life_us = attempt["usage_part"], half_life_seconds * SECOND_US
    if not part:
        return
    held_us = max(0, at_us - attempt["reserved_us"])
    entry = faded(attempt["usage_entry"], held_us, half_life_us)
    used = accrued(part, held_us, half_life_us) - entry
    note_usage(writer, [UsageNote(job["queue"], job["user_name"], used)], at_us, half_life_us)
