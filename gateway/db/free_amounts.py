"""What is left of a node's CPU, memory, pods and extended resources, counted anew."""

from collections.abc import Sequence
from typing import Final

from sqlalchemy import BigInteger, String, Update, select, update

from gateway.db.engine import Writer
from gateway.db.many import Given, Types, update_rows
from gateway.db.tables import assignments, node_amounts, nodes

_LEFT: Final[Types] = {"node": BigInteger(), "name": String(), "left": BigInteger()}


def recompute_free(writer: Writer, node_ids: Sequence[int]) -> None:
    """Set each node's free amounts to total less foreign use less live assignments, at least 0.

    Recomputing instead of adding back keeps the figures right when a node shrank meanwhile. The
    nodes' rows are locked first, so that no reservation can slip in between reading and writing.
    """
    if not node_ids:
        return
    connection = writer.connection
    connection.execute(
        select(nodes.c.id)
        .where(nodes.c.id.in_(node_ids))
        # Always in this order, so that two that free at the same time cannot wait for each other.
        .order_by(nodes.c.id)
        .with_for_update(key_share=True)
    )
    held: dict[tuple[int, str], int] = {}
    live = select(assignments.c.node_id, assignments.c.amounts).where(
        assignments.c.node_id.in_(node_ids), assignments.c.is_live
    )
    for row in connection.execute(live):
        for resource, amount in row.amounts.items():
            key = (row.node_id, resource)
            held[key] = held.get(key, 0) + amount
    current = connection.execute(
        select(node_amounts).where(node_amounts.c.node_id.in_(node_ids))
    ).mappings()
    changes = [
        {
            "node": row["node_id"],
            "name": row["resource"],
            # A node that shrank may hold more than it has; free never goes below nothing.
            "left": max(
                0,
                row["total"] - row["foreign_use"] - held.get((row["node_id"], row["resource"]), 0),
            ),
        }
        for row in current
    ]
    update_rows(writer, _LEFT, changes, _setting)
    connection.execute(update(nodes).where(nodes.c.id.in_(node_ids)).values(xact_id=writer.xact_id))


def _setting(given: Given) -> Update:
    is_it = (node_amounts.c.node_id == given("node"), node_amounts.c.resource == given("name"))
    return update(node_amounts).where(*is_it).values(free=given("left"))
