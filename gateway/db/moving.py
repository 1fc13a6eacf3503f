"""Changes to many jobs and attempts at once: the same compare-and-set as for one of them.

All or nothing: where one row is not as it was read, nobody's change stands and the caller tries
one after the other. Rows that change the same columns go into one statement.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from sqlalchemy import BigInteger, Table, Update, select, update

from gateway.core.vocabulary import AttemptPhase
from gateway.db.engine import Row, Writer
from gateway.db.free_amounts import recompute_free
from gateway.db.many import Given, update_rows
from gateway.db.tables import assignments, attempts, charges, device_grants, devices, jobs
from gateway.errors import StaleVersion

Changes = Sequence[tuple[Row, Mapping[str, Any]]]
"""Rows as they were read, each with the columns to set."""


def change_attempts(writer: Writer, changes: Changes) -> None:
    """Change attempts that are all still in the phase that was read; raises StaleVersion."""
    _change(writer, attempts, "phase", changes, {})


def change_jobs(writer: Writer, changes: Changes) -> None:
    """Change jobs that all still have the version that was read; raises StaleVersion."""
    marks = {"version": jobs.c.version + 1, "xact_id": writer.xact_id}
    _change(writer, jobs, "version", changes, marks)


def _change(
    writer: Writer, table: Table, guard: str, changes: Changes, marks: Mapping[str, Any]
) -> None:
    for names, rows in _alike(changes).items():
        # Prefixed, for SQLAlchemy keeps the plain names of columns to itself.
        types = {f"new_{name}": table.c[name].type for name in names}
        given = [
            {"its_id": row["id"], "known": row[guard]}
            | {f"new_{name}": wanted[name] for name in names}
            for row, wanted in rows
        ]
        key = {"its_id": table.c.id.type, "known": table.c[guard].type}
        statement = partial(_changing, table, guard, names, marks)
        if update_rows(writer, key | types, given, statement) != len(rows):
            raise StaleVersion(f"one of {len(rows)} {table.name} changed meanwhile")


def _changing(
    table: Table, guard: str, names: Sequence[str], marks: Mapping[str, Any], given: Given
) -> Update:
    values: dict[str, Any] = {name: given(f"new_{name}") for name in names}
    is_it = (table.c.id == given("its_id"), table.c[guard] == given("known"))
    return update(table).where(*is_it).values({**values, **marks})


def _alike(changes: Changes) -> dict[tuple[str, ...], list[tuple[Row, Mapping[str, Any]]]]:
    """Give the changes by the columns that they set."""
    found: dict[tuple[str, ...], list[tuple[Row, Mapping[str, Any]]]] = {}
    for row, values in changes:
        found.setdefault(tuple(sorted(values)), []).append((row, values))
    return found


def free_all(writer: Writer, attempt_ids: Iterable[int], at_us: int) -> None:
    """Give everything of live attempts back and close them; raises StaleVersion if one is closed.

    What each held is read from its own rows, as when a single one is freed.
    """
    ids = sorted(attempt_ids)
    connection = writer.connection
    closed = connection.execute(
        update(attempts)
        .where(attempts.c.id.in_(ids), attempts.c.phase != AttemptPhase.CLOSED)
        .values(phase=AttemptPhase.CLOSED, closed_us=at_us)
    )
    # Whoever closes an attempt frees it, so devices come back once however often it is tried.
    if closed.rowcount != len(ids):
        raise StaleVersion("one of these attempts was closed meanwhile")
    _free_devices(writer, ids)
    live = (assignments.c.attempt_id.in_(ids), assignments.c.is_live)
    released = update(assignments).where(*live).values(is_live=False)
    node_ids = connection.execute(released.returning(assignments.c.node_id)).scalars()
    recompute_free(writer, sorted(set(node_ids)))
    connection.execute(
        update(charges)
        .where(charges.c.attempt_id.in_(ids), charges.c.is_live)
        .values(is_live=False, closed_us=at_us, xact_id=writer.xact_id)
    )


def _free_devices(writer: Writer, attempt_ids: Sequence[int]) -> None:
    live = (
        select(device_grants.c.device_id, device_grants.c.units)
        .join(assignments, assignments.c.id == device_grants.c.assignment_id)
        .where(assignments.c.attempt_id.in_(attempt_ids), device_grants.c.is_live)
    )
    rows = writer.connection.execute(live).all()
    if not rows:
        return
    theirs = select(assignments.c.id).where(assignments.c.attempt_id.in_(attempt_ids))
    given_back = update(device_grants).where(
        device_grants.c.assignment_id.in_(theirs), device_grants.c.is_live
    )
    writer.connection.execute(given_back.values(is_live=False))
    # By grant: a shared device gets back exactly what each of them took.
    units: Counter[int] = Counter()
    for row in rows:
        units[row.device_id] += row.units
    returned = [{"device": device_id, "units": n} for device_id, n in sorted(units.items())]
    types = dict.fromkeys(("device", "units"), BigInteger())
    update_rows(writer, types, returned, partial(_returning_units, writer))


def _returning_units(writer: Writer, given: Given) -> Update:
    return (
        update(devices)
        .where(devices.c.id == given("device"))
        .values(
            units_free=devices.c.units_free + given("units"),
            version=devices.c.version + 1,
            xact_id=writer.xact_id,
        )
    )
