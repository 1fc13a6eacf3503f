"""Nodes that are held for starving jobs: one row for each flavor that ever held some.

A hold that ended leaves its row without a job: mirrors read what changed, and would miss a row that
is gone.
"""

from collections.abc import Iterable

from sqlalchemy import Connection, func, select

from gateway.core.admission.types import NodeHold
from gateway.db.engine import Writer
from gateway.db.tables import node_holds

NOBODY = 0


def read_node_holds(connection: Connection, horizon: int) -> tuple[NodeHold, ...] | None:
    """Give all holds by flavor; None when nothing changed since the horizon."""
    newest = connection.execute(select(func.max(node_holds.c.xact_id))).scalar()
    if newest is None or newest < horizon:
        return None
    rows = connection.execute(
        select(node_holds).where(node_holds.c.job_id != NOBODY).order_by(node_holds.c.flavor)
    )
    return tuple(
        NodeHold(flavor=row.flavor, job_id=row.job_id, node_ids=tuple(row.node_ids)) for row in rows
    )


def store_node_holds(writer: Writer, holds: Iterable[NodeHold], at_us: int) -> tuple[NodeHold, ...]:
    """Make these the only holds; gives those that are new."""
    before = {hold.flavor: hold for hold in read_node_holds(writer.connection, 0) or ()}
    after = {hold.flavor: hold for hold in holds}
    new = tuple(hold for flavor, hold in sorted(after.items()) if before.get(flavor) != hold)
    ended = sorted(before.keys() - after.keys())
    for hold in (*new, *(NodeHold(flavor=name, job_id=NOBODY, node_ids=()) for name in ended)):
        _store(writer, hold, at_us)
    return new


def _store(writer: Writer, hold: NodeHold, at_us: int) -> None:
    values = {
        "job_id": hold.job_id,
        "node_ids": list(hold.node_ids),
        "since_us": at_us,
        "xact_id": writer.xact_id,
    }
    statement = writer.inserting(node_holds).values(flavor=hold.flavor, **values)
    writer.connection.execute(
        statement.on_conflict_do_update(index_elements=["flavor"], set_=values)
    )
