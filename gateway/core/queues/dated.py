"""Quota at an instant: the changes that admins dated, applied once their time has come.

A change acts at its instant and stays; nothing here looks ahead, except to say when the next one
is due. Nothing here charges or judges: what a cut means for use above it is the quota tree's.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import TypeVar

from gateway.core.queues.definitions import Cohort, DatedChange, Queue, Quota

Owner = TypeVar("Owner", Queue, Cohort)


def quotas_at(owner: Queue | Cohort, now_us: int) -> tuple[Quota, ...]:
    """Give an owner's quota rows as they stand at an instant, rows that a change made last.

    Of changes dated alike the later in the definition has the last word.
    """
    # Python sorts stably, so the position in the definition needs no key of its own.
    due = sorted(
        (change for change in owner.changes if change.at_us <= now_us), key=attrgetter("at_us")
    )
    # Nothing is built for the many who have no change; comparing them stays a look at identity.
    if not due:
        return owner.quotas
    rows = {(quota.flavor, quota.resource): quota for quota in owner.quotas}
    for change in due:
        pair = (change.flavor, change.resource)
        rows[pair] = _changed(rows.get(pair), change)
    return tuple(rows.values())


def definitions_at(
    queues: Sequence[Queue], cohorts: Sequence[Cohort], now_us: int
) -> tuple[tuple[Queue, ...], tuple[Cohort, ...]]:
    """Give the definitions with what is due put in and no dated change left."""
    return (
        tuple(_at(queue, now_us) for queue in queues),
        tuple(_at(cohort, now_us) for cohort in cohorts),
    )


def next_change_us(queues: Iterable[Queue], cohorts: Iterable[Cohort], now_us: int) -> int | None:
    """Give the instant of the earliest change still to come; None when there is none."""
    coming = [
        change.at_us
        for owners in (queues, cohorts)
        for owner in owners
        for change in owner.changes
        if change.at_us > now_us
    ]
    return min(coming, default=None)


def _at(owner: Owner, now_us: int) -> Owner:
    # Most have no changes; they stay the very same objects, which costs nothing to compare.
    if not owner.changes:
        return owner
    return replace(owner, quotas=quotas_at(owner, now_us), changes=())


def _changed(row: Quota | None, change: DatedChange) -> Quota:
    """Put in the values that a change names; a row that was missing starts from nothing."""
    row = row or Quota(flavor=change.flavor, resource=change.resource, nominal=0)
    borrowing, lending = change.borrowing_limit, change.lending_limit
    return replace(
        row,
        nominal=row.nominal if change.nominal is None else change.nominal,
        borrowing_limit=row.borrowing_limit if borrowing is None else borrowing,
        lending_limit=row.lending_limit if lending is None else lending,
    )
