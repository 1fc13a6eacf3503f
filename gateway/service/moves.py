"""Steps of many attempts, stored together: each transaction carries a batch and is as durable.

A step that somebody else's change has overtaken is left out alone; all others stand. Nothing here
talks to the cluster.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from gateway.db.engine import Writer
from gateway.db.leases import require_epoch
from gateway.db.moving import change_attempts
from gateway.errors import StaleVersion
from gateway.service.changes import Change, apply_changes
from gateway.service.context import Gateway
from gateway.service.launches import Work, reread
from gateway.service.quarantine import POISON, quarantine

Item = TypeVar("Item")
Stored = TypeVar("Stored")

MOST_TOGETHER = 100
"""Attempts whose steps share a transaction."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """One step of one attempt, to be stored."""

    work: Work
    attempt: Mapping[str, Any] = field(default_factory=dict)
    """Columns of the attempt."""
    change: Change | None = None
    """Step of the job."""


def guard(gateway: Gateway, writer: Writer) -> None:
    """Make sure that this process leads, until the transaction ends; raises StaleLeader."""
    # A former leader may have seen something late; only the present one may write it.
    require_epoch(writer, gateway.leadership.epoch or -1)


def store_moves(gateway: Gateway, moves: Sequence[Move]) -> list[Work]:
    """Store steps; gives the work that they concern with its rows as they are afterwards.

    Raises:
        StaleLeader: somebody else leads.
    """

    def store(some: Sequence[Move]) -> list[Work]:
        return gateway.database.run_write(partial(_write, gateway, some))

    return store_or_blame(gateway, store, [(each.work, each) for each in moves])


def store_or_blame(
    gateway: Gateway,
    store: Callable[[list[Item]], list[Stored]],
    items: Sequence[tuple[Work, Item]],
) -> list[Stored]:
    """Store all, or else each by itself, so that only the one at fault is left out.

    Gives what storing them gave. One that somebody overtook is left for the next pass; one that
    makes no sense is set aside.
    """
    if not items:
        return []
    try:
        return store([item for _, item in items])
    except (StaleVersion, *POISON) as error:
        if len(items) == 1:
            _blame(gateway, items[0][0], error)
            return []
        return [done for each in items for done in store_or_blame(gateway, store, [each])]


def _blame(gateway: Gateway, work: Work, error: Exception) -> None:
    if not isinstance(error, StaleVersion):
        quarantine(gateway, work.job, error)


def _write(gateway: Gateway, moves: Sequence[Move], writer: Writer) -> list[Work]:
    guard(gateway, writer)
    change_attempts(writer, [(each.work.attempt, each.attempt) for each in moves if each.attempt])
    changes = [(each.work.job, each.change) for each in moves if each.change is not None]
    apply_changes(writer, changes)
    # In the same transaction: what somebody else did to these jobs until now is seen.
    return reread(writer.connection, [each.work for each in moves])
