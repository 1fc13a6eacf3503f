"""Reads queues, cohorts and flavors as the decision sees them. Reads only.

The service's view of the same rows, as what an admin wrote, is in its catalog.
"""

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from sqlalchemy import Connection, RowMapping, Table, select

from gateway.core.mirror import DefinitionRows
from gateway.core.queues.definitions import (
    Ageing,
    Budget,
    Caps,
    Cohort,
    DatedChange,
    Flavor,
    Queue,
    Quota,
)
from gateway.core.resources.node_rules import Toleration
from gateway.core.vocabulary import UNLIMITED, Blocking, QueueState, WhenCanBorrow
from gateway.db.state import read_generation
from gateway.db.tables import cohorts, dated_changes, flavors, queues, quotas

Owned = TypeVar("Owned")
ByOwner = dict[tuple[str, str], tuple[Owned, ...]]


def read_definitions(connection: Connection) -> DefinitionRows:
    """Give every queue, cohort and flavor, sorted by name, at the present generation."""
    rows, dated = _read_quotas(connection), _read_changes(connection)
    return DefinitionRows(
        generation=read_generation(connection),
        queues=tuple(
            _queue(row, rows.get(("queue", row["name"]), ()), dated.get(("queue", row["name"]), ()))
            for row in _by_name(connection, queues)
        ),
        cohorts=tuple(
            Cohort(
                name=row["name"],
                parent=row["parent"],
                weight=row["weight"],
                quotas=rows.get(("cohort", row["name"]), ()),
                changes=dated.get(("cohort", row["name"]), ()),
            )
            for row in _by_name(connection, cohorts)
        ),
        flavors=tuple(
            Flavor(
                name=row["name"],
                node_labels=tuple(sorted(row["node_labels"].items())),
                tolerations=_tolerations(row["tolerations"]),
            )
            for row in _by_name(connection, flavors)
        ),
    )


def _by_name(connection: Connection, table: Table) -> Iterable[RowMapping]:
    return connection.execute(select(table).order_by(table.c.name)).mappings()


def _queue(
    row: RowMapping, quota_rows: tuple[Quota, ...], changes: tuple[DatedChange, ...]
) -> Queue:
    return Queue(
        name=row["name"],
        cohort=row["cohort"],
        weight=row["weight"],
        state=QueueState(row["state"]),
        quotas=quota_rows,
        flavors=tuple(row["flavors"]),
        changes=changes,
        # Not made an enum: others may have added policies by name.
        order=row["order_policy"],
        # Stored as the fields that were set; what is missing is the default of the core.
        ageing=Ageing(**row["ageing"]),
        blocking=Blocking(row["blocking"]),
        when_can_borrow=WhenCanBorrow(row["when_can_borrow"]),
        caps=Caps(**row["caps"]),
        budget=None if row["budget"] is None else Budget(**row["budget"]),
    )


def _tolerations(items: Iterable[Mapping[str, Any]]) -> tuple[Toleration, ...]:
    return tuple(Toleration(**item) for item in items)


def _read_quotas(connection: Connection) -> ByOwner[Quota]:
    found: ByOwner[Quota] = {}
    order = (quotas.c.owner_kind, quotas.c.owner, quotas.c.flavor, quotas.c.resource)
    for row in connection.execute(select(quotas).order_by(*order)):
        quota = Quota(
            flavor=row.flavor,
            resource=row.resource,
            nominal=row.nominal,
            borrowing_limit=UNLIMITED if row.borrowing_limit is None else row.borrowing_limit,
            lending_limit=UNLIMITED if row.lending_limit is None else row.lending_limit,
        )
        key = (row.owner_kind, row.owner)
        found[key] = (*found.get(key, ()), quota)
    return found


def _read_changes(connection: Connection) -> ByOwner[DatedChange]:
    """Give the dated changes of each owner, by instant; past ones stay, for they are in force."""
    found: ByOwner[DatedChange] = {}
    table = dated_changes
    order = (table.c.owner_kind, table.c.owner, table.c.at_us, table.c.flavor, table.c.resource)
    for row in connection.execute(select(table).order_by(*order)):
        change = DatedChange(
            at_us=row.at_us,
            flavor=row.flavor,
            resource=row.resource,
            nominal=row.nominal,
            borrowing_limit=row.borrowing_limit,
            lending_limit=row.lending_limit,
        )
        key = (row.owner_kind, row.owner)
        found[key] = (*found.get(key, ()), change)
    return found
