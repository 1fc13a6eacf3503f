"""Queues, cohorts, flavors, classes and their quotas in the database, as plain rows.

Whoever changes a definition first calls `state.bump_generation`: it makes plans of the old
definitions void, and its row lock lets one definition writer in at a time. What makes sense, and
whether the version is still the one that was read, is checked by the service.
"""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any

from sqlalchemy import Connection, Table, delete, func, insert, select, update

from gateway.core.vocabulary import HOLDING_STATES, TERMINAL_STATES
from gateway.db.engine import Row, Writer
from gateway.db.tables import (
    charges,
    cohorts,
    dated_changes,
    flavors,
    jobs,
    namespace_defaults,
    nodes,
    priority_classes,
    queues,
    quotas,
)


class Noun(StrEnum):
    """Kinds of definition."""

    FLAVOR = "flavor"
    COHORT = "cohort"
    PRIORITY_CLASS = "priority-class"
    QUEUE = "queue"


_TABLES = {
    Noun.FLAVOR: flavors,
    Noun.COHORT: cohorts,
    Noun.PRIORITY_CLASS: priority_classes,
    Noun.QUEUE: queues,
}
OWNERS = frozenset({Noun.COHORT, Noun.QUEUE})
"""Kinds that have quota."""
_ENDED = tuple(state.value for state in TERMINAL_STATES)


def list_rows(connection: Connection, noun: Noun) -> Sequence[Row]:
    """Give all rows of a kind by name."""
    table = _TABLES[noun]
    return connection.execute(select(table).order_by(table.c.name)).mappings().all()


def insert_row(writer: Writer, noun: Noun, values: Mapping[str, Any]) -> None:
    """Insert a definition; a taken name raises IntegrityError, so look first."""
    writer.connection.execute(insert(_TABLES[noun]).values(**values))


def update_row(writer: Writer, noun: Noun, name: str, values: Mapping[str, Any]) -> None:
    """Change a definition and count its version up."""
    table = _TABLES[noun]
    writer.connection.execute(
        update(table).where(table.c.name == name).values(**values, version=table.c.version + 1)
    )


def delete_row(writer: Writer, noun: Noun, name: str) -> None:
    """Delete a definition with its quotas and defaults."""
    table = _TABLES[noun]
    if noun in OWNERS:
        # Rows of an owner hang on its name without a foreign key, as owners are of two kinds.
        replace_quotas(writer, noun, name, [])
        replace_changes(writer, noun, name, [])
    if noun is Noun.QUEUE:
        replace_namespaces(writer, name, [])
    writer.connection.execute(delete(table).where(table.c.name == name))


def list_quotas(connection: Connection, noun: Noun) -> dict[str, list[Row]]:
    """Give quota rows by owner, each owner's by flavor and resource."""
    return _by_owner(connection, quotas, noun, ("flavor", "resource"))


def list_changes(connection: Connection, noun: Noun) -> dict[str, list[Row]]:
    """Give dated changes by owner, each owner's by instant, flavor and resource."""
    return _by_owner(connection, dated_changes, noun, ("at_us", "flavor", "resource"))


def _by_owner(
    connection: Connection, table: Table, noun: Noun, order: Sequence[str]
) -> dict[str, list[Row]]:
    statement = select(table).where(table.c.owner_kind == noun.value)
    statement = statement.order_by(*(table.c[name] for name in ("owner", *order)))
    found: dict[str, list[Row]] = {}
    for row in connection.execute(statement).mappings():
        found.setdefault(row["owner"], []).append(row)
    return found


def replace_quotas(
    writer: Writer, noun: Noun, owner: str, rows: Iterable[Mapping[str, Any]]
) -> None:
    """Give an owner exactly these quotas."""
    _replace_owned(writer, quotas, (noun, owner), rows)


def replace_changes(
    writer: Writer, noun: Noun, owner: str, rows: Iterable[Mapping[str, Any]]
) -> None:
    """Give an owner exactly these dated changes."""
    _replace_owned(writer, dated_changes, (noun, owner), rows)


def _replace_owned(
    writer: Writer, table: Table, owner: tuple[Noun, str], rows: Iterable[Mapping[str, Any]]
) -> None:
    key = {"owner_kind": owner[0].value, "owner": owner[1]}
    is_owned = [table.c[name] == value for name, value in key.items()]
    # All out and in again: rows are few, and what stays must not be told from what changed.
    writer.connection.execute(delete(table).where(*is_owned))
    values = [{**row, **key} for row in rows]
    if values:
        writer.connection.execute(insert(table), values)


def rerank_jobs(writer: Writer, priority_class: str, value: int) -> None:
    """Let live jobs of a class count as its new value does.

    Their versions stay: nobody who read such a job before decided anything by its rank, and plans
    of the old definitions are void anyway.
    """
    writer.connection.execute(
        update(jobs)
        .where(jobs.c.priority_class == priority_class, jobs.c.state.not_in(_ENDED))
        .values(rank=value, xact_id=writer.xact_id)
    )


def count_classed(connection: Connection, priority_class: str) -> int:
    """Give how many live jobs have this class."""
    has_it = (jobs.c.priority_class == priority_class, jobs.c.state.not_in(_ENDED))
    return int(connection.execute(select(func.count()).where(*has_it)).scalar_one())


def list_namespaces(connection: Connection) -> dict[str, list[str]]:
    """Give the namespaces whose default is a queue, by queue, sorted."""
    statement = select(namespace_defaults).order_by(namespace_defaults.c.namespace)
    found: dict[str, list[str]] = {}
    for row in connection.execute(statement):
        found.setdefault(row.queue, []).append(row.namespace)
    return found


def replace_namespaces(writer: Writer, queue: str, names: Iterable[str]) -> None:
    """Make a queue the default of exactly these namespaces, taking them from other queues."""
    table = namespace_defaults
    writer.connection.execute(delete(table).where(table.c.queue == queue))
    for name in names:
        statement = writer.inserting(table).values(namespace=name, queue=queue)
        writer.connection.execute(
            # Taken over in one statement, so that no moment has none, or two.
            statement.on_conflict_do_update(index_elements=["namespace"], set_={"queue": queue})
        )


def count_jobs(connection: Connection) -> dict[str, dict[str, int]]:
    """Give each queue's number of live jobs by state."""
    statement = (
        select(jobs.c.queue, jobs.c.state, func.count())
        .where(jobs.c.state.not_in(_ENDED))
        .group_by(jobs.c.queue, jobs.c.state)
    )
    found: dict[str, dict[str, int]] = {}
    for queue, state, number in connection.execute(statement):
        found.setdefault(queue, {})[state] = number
    return found


def active_of(counts: Mapping[str, int]) -> int:
    """Give how many of a queue's jobs hold devices."""
    return sum(counts.get(state.value, 0) for state in HOLDING_STATES)


def live_usage(connection: Connection) -> dict[tuple[str, str, str], int]:
    """Give what live reservations use, by (queue, flavor, resource)."""
    key = (charges.c.queue, charges.c.flavor, charges.c.resource)
    statement = select(*key, func.sum(charges.c.amount)).where(charges.c.is_live).group_by(*key)
    return {(row[0], row[1], row[2]): int(row[3]) for row in connection.execute(statement)}


def node_labels(connection: Connection) -> dict[str, dict[str, str]]:
    """Give the labels of each present node by its name."""
    # Of nodes that are gone nobody needs to fear that quota counts them twice.
    statement = select(nodes.c.name, nodes.c.labels).where(nodes.c.is_present)
    rows = connection.execute(statement.order_by(nodes.c.name))
    return {row.name: dict(row.labels) for row in rows}
