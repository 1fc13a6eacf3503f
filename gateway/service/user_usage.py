"""What a gang adds to its user's decayed usage, in queues that order by it.

At reservation it counts as if it had run for as long as it is expected to, so that a user cannot
start many gangs before the first of them counts. Whoever holds his devices for longer counts for
more while he does; at release what was counted is taken back, and what was really used counts.
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
from gateway.db.leases import require_epoch
from gateway.db.usage import UsageNote, counted, note_usage, set_counted
from gateway.service.context import Gateway

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
    writer: Writer, pairs: Iterable[tuple[Row, Row]], at_us: int, half_life_seconds: int
) -> None:
    """Count what gangs that are freed really used, in place of what they counted at the start."""
    half_life_us = half_life_seconds * SECOND_US
    notes = [
        UsageNote(job["queue"], job["user_name"], _uncounted(attempt, at_us, half_life_us))
        for job, attempt in pairs
        if attempt["usage_part"]
    ]
    note_usage(writer, notes, at_us, half_life_us)


def accrue_usage(gateway: Gateway) -> int:
    """Count what gangs used beyond what they counted at the start; gives of how many gangs.

    Else one that runs for weeks would count as an hour until it ends. Only the leader does it.
    """
    epoch = gateway.leadership.epoch
    if epoch is None:
        return 0
    half_life_us = gateway.settings.usage_half_life_seconds * SECOND_US

    def work(writer: Writer) -> int:
        require_epoch(writer, epoch)
        at_us = gateway.clock.now_us()
        found = [(row, _uncounted(row, at_us, half_life_us)) for row in counted(writer.connection)]
        # What a gang counted at once stands until it has used as much.
        late = [(row, more) for row, more in found if more > 0]
        notes = [UsageNote(row["queue"], row["user_name"], more) for row, more in late]
        note_usage(writer, notes, at_us, half_life_us)
        for row, _ in late:
            set_counted(writer, row["id"], _used(row, at_us, half_life_us), at_us)
        return len(late)

    return gateway.database.run_write(work)


def _uncounted(attempt: Row, at_us: int, half_life_us: int) -> int:
    """Give what a gang has used and not counted; negative where it counted too much."""
    since_us = attempt["usage_at_us"] or attempt["reserved_us"]
    so_far = faded(attempt["usage_entry"], max(0, at_us - since_us), half_life_us)
    return _used(attempt, at_us, half_life_us) - so_far


def _used(attempt: Row, at_us: int, half_life_us: int) -> int:
    # A clock that was set back makes no use negative.
    held_us = max(0, at_us - attempt["reserved_us"])
    return accrued(attempt["usage_part"], held_us, half_life_us)
