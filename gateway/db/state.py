"""The one row of counters: configuration generation, cycle serial, inventory completeness."""

from sqlalchemy import Connection, select, text, update

from gateway.db.engine import Writer
from gateway.db.tables import gateway_state


def next_serial(writer: Writer) -> int:
    """Give the next cycle's number; call it in a transaction that writes nothing else.

    Nobody waits until it is on the disk: after a crash of the server a number may come twice, which
    only labels two cycles alike.
    """
    if not writer.is_sqlite:
        writer.connection.execute(text("SET LOCAL synchronous_commit TO off"))
    statement = (
        update(gateway_state)
        .values(cycle_serial=gateway_state.c.cycle_serial + 1)
        .returning(gateway_state.c.cycle_serial)
    )
    return int(writer.connection.execute(statement).scalar_one())


def bump_generation(writer: Writer) -> int:
    """Count a change of definitions; plans made under the old number are not committed."""
    statement = (
        update(gateway_state)
        .values(config_generation=gateway_state.c.config_generation + 1)
        .returning(gateway_state.c.config_generation)
    )
    return int(writer.connection.execute(statement).scalar_one())


def read_generation(connection: Connection) -> int:
    """Give the present configuration generation."""
    return int(connection.execute(select(gateway_state.c.config_generation)).scalar_one())


def read_serial(connection: Connection) -> int:
    """Give the number of the last cycle."""
    return int(connection.execute(select(gateway_state.c.cycle_serial)).scalar_one())


def is_inventory_complete(connection: Connection) -> bool:
    """Whether the fleet has been read whole at least once."""
    return bool(connection.execute(select(gateway_state.c.is_inventory_complete)).scalar_one())


def set_inventory_complete(writer: Writer) -> None:
    """Remember that the fleet has been read whole."""
    writer.connection.execute(update(gateway_state).values(is_inventory_complete=True))
