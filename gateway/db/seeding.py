"""What a fresh database holds, so that a new server accepts a job: one queue, one flavor."""

from sqlalchemy import insert, select

from gateway.db.engine import Writer
from gateway.db.tables import flavors, gateway_state, leader_lease, queues

PRIORITY_LIMIT = 1_000_000_000


def seed(writer: Writer) -> None:
    """Insert the single rows and the unlimited defaults, unless they are there."""
    connection = writer.connection
    for table in (gateway_state, leader_lease):
        if connection.execute(select(table.c.id)).first() is None:
            connection.execute(insert(table).values(id=1))
    if connection.execute(select(flavors.c.name)).first() is None:
        connection.execute(insert(flavors).values(name="default", node_labels={}, tolerations=[]))
    if connection.execute(select(queues.c.name)).first() is None:
        connection.execute(
            insert(queues).values(
                name="default",
                priority_min=-PRIORITY_LIMIT,
                priority_max=PRIORITY_LIMIT,
                namespaces=["*"],
                flavors=[],
            )
        )
