"""Changes to many jobs and attempts at once: the same compare-and-set as for one of them.

All or nothing: where one row is not as it was read, nobody's change stands and the caller tries
one after the other. Rows that change the same columns go into one statement.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Table, bindparam, select, update

from gateway.core.vocabulary import AttemptPhase
from gateway.db.engine import Row, Writer
from gateway.db.free_amounts import recompute_free
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
        values: dict[str, Any] = {name: bindparam(f"new_{name}") for name in names}
        statement = (
            update(table)
            .where(table.c.id == bindparam("its_id"), table.c[guard] == bindparam("known"))
            .values({**values, **marks})
        )
        parameters = [
            {"its_id": row["id"], "known": row[guard]}
            | {f"new_{name}": wanted[name] for name in names}
            for row, wanted in rows
        ]
        if writer.connection.execute(statement, parameters).rowcount != len(rows):
            raise StaleVersion(f"one of {len(rows)} {table.name} changed meanwhile")


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
        select(device_grants.c.id, device_grants.c.device_id, device_grants.c.units)
        .join(assignments, assignments.c.id == device_grants.c.assignment_id)
        .where(assignments.c.attempt_id.in_(attempt_ids), device_grants.c.is_live)
    )
    rows = writer.connection.execute(live).all()
    if not rows:
        return
    writer.connection.execute(
        update(device_grants).where(device_grants.c.id == bindparam("grant")).values(is_live=False),
        [{"grant": row.id} for row in rows],
    )
    writer.connection.execute(
        update(devices)
        .where(devices.c.id == bindparam("device"))
        .values(
            # By grant: a shared device gets back exactly what each of them took.
            units_free=devices.c.units_free + bindparam("units"),
            version=devices.c.version + 1,
            xact_id=writer.xact_id,
        ),
        [{"device": row.device_id, "units": row.units} for row in rows],
    )
