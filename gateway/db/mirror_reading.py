"""Reads what changed since the last reading, missing nothing.

On PostgreSQL a row becomes visible when its transaction commits, not when it got its number, so a
plain "greater than the last number" loses a transaction that stays open while a later one commits.
Each mirrored row therefore carries its transaction's id; a reader takes the oldest id still in
flight as its next horizon and reads every row at or above the last one. Applying a row twice is
harmless. SQLite has one writer, so what its counter has not reached yet is what comes next.
"""

from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any, NamedTuple, cast

from sqlalchemy import (
    ColumnElement,
    Connection,
    RowMapping,
    Select,
    and_,
    false,
    func,
    or_,
    select,
    text,
)

from gateway.core.devices.rows import DeviceRow, NodeRow
from gateway.core.mirror import ChargeRow, ClassRow, DefinitionRows, JobRow, MirrorRows
from gateway.core.resources import GPU
from gateway.core.resources.node_rules import Taint
from gateway.core.vocabulary import DeviceHealth, DeviceKind, JobState
from gateway.core.waiting.table import NewJob
from gateway.db.definition_reading import read_definitions
from gateway.db.engine import Database
from gateway.db.node_holds import read_node_holds
from gateway.db.recent import read_recent
from gateway.db.request_shapes import decode
from gateway.db.state import is_inventory_complete, read_generation
from gateway.db.tables import (
    charges,
    devices,
    jobs,
    node_amounts,
    nodes,
    request_classes,
)
from gateway.db.usage import read_usage

WEEK_US = 7 * 86_400_000_000
PIECE = 10_000
"""Waiting jobs that are read at a time."""
_HORIZON = {
    True: "SELECT write_counter + 1 FROM gateway_state",
    # What changed is at the end of an index; statistics that lag behind make whole tables look
    # cheaper, and then a reading costs what waits instead of what changed.
    False: "SELECT CAST(CAST(pg_snapshot_xmin(pg_current_snapshot()) AS text) AS bigint),"
    " set_config('enable_seqscan', CASE WHEN :horizon = 0 THEN 'on' ELSE 'off' END, true)",
}


class Asked(NamedTuple):
    """What a reading is to bring besides what changed."""

    half_life_us: int = WEEK_US
    with_jobs: bool = True
    """False where `read_waiting` brings them."""
    with_recent: bool = False
    """Whether jobs that come change what is usual."""
    generation: int | None = None
    """Of the definitions that are known, which are not brought again."""


PLAIN = Asked()


def read_changes(database: Database, horizon: int, asked: Asked = PLAIN) -> tuple[MirrorRows, int]:
    """Give rows changed since `horizon` (0 for all) and the horizon to ask with next."""
    with database.read() as connection:
        # Before any row is read: what commits in between is at or above it, and comes again.
        statement = text(_HORIZON[database.is_sqlite])
        following = int(connection.execute(statement, {"horizon": horizon}).scalar_one())
        definitions = _read_news_of_definitions(connection, asked.generation)
        rows = MirrorRows(
            jobs=_read_jobs(connection, horizon) if asked.with_jobs else (),
            classes=_read_classes(connection, horizon),
            nodes=_read_nodes(connection, horizon),
            devices=_read_devices(connection, horizon),
            charges=_read_charges(connection, horizon, definitions),
            usage=read_usage(connection, horizon, asked.half_life_us),
            node_holds=read_node_holds(connection, horizon),
            definitions=definitions,
            is_inventory_complete=is_inventory_complete(connection) if horizon == 0 else None,
        )
        # The flag changes with the first whole reading of the fleet, which always brings nodes.
        if rows.nodes and horizon:
            rows = rows._replace(is_inventory_complete=is_inventory_complete(connection))
        # Only jobs that come change what is recent, and each brings a row.
        if asked.with_recent and (rows.jobs or horizon == 0):
            rows = rows._replace(recent=read_recent(connection))
    return rows, following


def _read_news_of_definitions(connection: Connection, known: int | None) -> DefinitionRows | None:
    if known is not None and read_generation(connection) == known:
        return None
    return read_definitions(connection)


def read_waiting(database: Database) -> Iterator[Sequence[NewJob]]:
    """Give everybody who waits, in pieces, for a mirror that starts from nothing.

    Call it after `read_changes`, never before: whoever changes meanwhile is read again from its
    horizon on, and taking a row twice is harmless.
    """
    columns = (
        jobs.c.id,
        jobs.c.version,
        jobs.c.queue,
        jobs.c.class_id,
        jobs.c.user_name,
        jobs.c.priority,
        jobs.c.rank,
        jobs.c.submitted_us,
        jobs.c.eligible_us,
        jobs.c.deadline_us,
        jobs.c.expected_seconds,
    )
    statement = (
        select(*columns)
        .where(jobs.c.state == JobState.PENDING, ~jobs.c.is_quarantined)
        .order_by(jobs.c.id)
    )
    with database.read() as connection:
        yield from cast("Iterator[Sequence[NewJob]]", _streamed(connection, statement))


def _streamed(connection: Connection, statement: Select[Any]) -> Iterator[list[tuple[Any, ...]]]:
    """Give plain tuples in pieces, so that a million rows are never in memory at once.

    By the driver itself: wrapping a row takes longer than fetching it.
    """
    dialect, driver = connection.dialect, cast(Any, connection.connection.driver_connection)
    words = str(statement.compile(dialect=dialect, compile_kwargs={"literal_binds": True}))
    # PostgreSQL's driver keeps the whole answer unless its cursor has a name.
    with closing(driver.cursor(*([] if dialect.name == "sqlite" else ["waiting"]))) as cursor:
        cursor.execute(words)
        while piece := cursor.fetchmany(PIECE):
            yield piece


def _read_jobs(connection: Connection, horizon: int) -> tuple[JobRow, ...]:
    columns = (
        jobs.c.id,
        jobs.c.version,
        jobs.c.queue,
        jobs.c.class_id,
        jobs.c.priority,
        jobs.c.submitted_us,
        jobs.c.state,
        jobs.c.is_quarantined,
        jobs.c.user_name,
        jobs.c.rank,
        jobs.c.eligible_us,
        jobs.c.deadline_us,
        jobs.c.expected_seconds,
    )
    statement = select(*columns).where(jobs.c.xact_id >= horizon)
    if horizon == 0:
        # Nobody needs ended jobs to start from; later readings need them to drop a waiting one.
        statement = statement.where(jobs.c.state == JobState.PENDING)
    rows = connection.execute(statement)
    return tuple(JobRow(*row[:6], JobState(row.state), *row[7:]) for row in rows)


def _read_classes(connection: Connection, horizon: int) -> tuple[ClassRow, ...]:
    statement = select(request_classes.c.id, request_classes.c.shape).where(
        request_classes.c.xact_id >= horizon
    )
    rows = [_class_row(row.id, row.shape) for row in connection.execute(statement)]
    return tuple(row for row in rows if row is not None)


def _class_row(class_id: int, shape: Any) -> ClassRow | None:
    """Give a class; None for one that makes no sense, whose jobs the cycle then sets aside."""
    try:
        request = decode(shape)
        # Sums tell amounts from words, which JSON would carry as well.
        sum(amount for _, amount in request.total)
        return ClassRow(class_id, request)
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


def read_spent(database: Database, definitions: DefinitionRows) -> tuple[ChargeRow, ...]:
    """Give the ended charges that budgets count now, for queues whose budget is new or longer."""
    with database.read() as connection:
        budgeted = _closed_in_windows(connection, definitions)
        return _charge_rows(connection, or_(false(), *budgeted))


def _read_charges(
    connection: Connection, horizon: int, definitions: DefinitionRows | None
) -> tuple[ChargeRow, ...]:
    condition: ColumnElement[bool] = charges.c.xact_id >= horizon
    if horizon == 0 and definitions is not None:
        # Ended charges are most of the table; only those that a budget may still count are read.
        budgeted = _closed_in_windows(connection, definitions)
        condition = or_(charges.c.is_live, *budgeted)
    return _charge_rows(connection, condition)


def _charge_rows(connection: Connection, condition: ColumnElement[bool]) -> tuple[ChargeRow, ...]:
    statement = select(
        charges.c.id,
        charges.c.queue,
        charges.c.flavor,
        charges.c.resource,
        charges.c.amount,
        charges.c.is_live,
        charges.c.user_name,
        charges.c.reserved_us,
        func.coalesce(charges.c.closed_us, 0),
        charges.c.attempt_id,
    ).where(condition)
    return tuple(ChargeRow._make(row) for row in connection.execute(statement))


def _closed_in_windows(
    connection: Connection, definitions: DefinitionRows
) -> list[ColumnElement[bool]]:
    """Give what is true of closed GPU charges that may reach into a budget's present window.

    The present window began less than its length ago, and now is not before the last release: what
    ended a whole window before that release is surely out. No clock is needed to say so.
    """
    is_closed = and_(charges.c.closed_us.is_not(None), charges.c.resource == GPU)
    found: list[ColumnElement[bool]] = []
    for queue in definitions.queues:
        if queue.budget is None:
            continue
        of_queue = and_(is_closed, charges.c.queue == queue.name)
        last = connection.execute(select(func.max(charges.c.closed_us)).where(of_queue)).scalar()
        if last is not None:
            since = last - queue.budget.window_seconds * 1_000_000
            found.append(and_(of_queue, charges.c.closed_us > since))
    return found


def _read_nodes(connection: Connection, horizon: int) -> tuple[NodeRow, ...]:
    changed = connection.execute(select(nodes).where(nodes.c.xact_id >= horizon)).mappings().all()
    total: dict[int, dict[str, int]] = {}
    free: dict[int, dict[str, int]] = {}
    statement = select(node_amounts).where(
        # Amounts have no number of their own: whoever changes one marks its node.
        node_amounts.c.node_id.in_(select(nodes.c.id).where(nodes.c.xact_id >= horizon))
    )
    for row in connection.execute(statement):
        total.setdefault(row.node_id, {})[row.resource] = row.total
        free.setdefault(row.node_id, {})[row.resource] = row.free
    return tuple(
        _node_row(row, total.get(row["id"], {}), free.get(row["id"], {})) for row in changed
    )


def _node_row(row: RowMapping, total: dict[str, int], free: dict[str, int]) -> NodeRow:
    health = DeviceHealth.CORDONED if row["is_cordoned"] else DeviceHealth(row["health"])
    return NodeRow(
        node_id=row["id"],
        name=row["name"],
        machine_type=row["machine_type"],
        health=health,
        is_present=row["is_present"],
        labels=tuple(sorted(row["labels"].items())),
        taints=tuple(
            Taint(key=key, value=value, effect=effect) for key, value, effect in row["taints"]
        ),
        total=total,
        free=free,
    )


def _read_devices(connection: Connection, horizon: int) -> tuple[DeviceRow, ...]:
    rows = connection.execute(select(devices).where(devices.c.xact_id >= horizon))
    return tuple(
        DeviceRow(
            device_id=row.id,
            node_id=row.node_id,
            kind=DeviceKind(row.kind),
            ordinal=row.ordinal,
            switch=row.switch,
            numa=row.numa,
            rail=row.rail,
            nvlink_group=row.nvlink_group,
            health=DeviceHealth(row.health),
            is_present=row.is_present,
            is_foreign=row.is_foreign,
            units_total=row.units_total,
            units_free=row.units_free,
        )
        for row in rows
    )
