"""Leadership: a lease row whose epoch grows at each take-over and fences every decision write.

Judged by the database's clock alone, so skewed machines cannot take over early. A former leader
that wakes up late writes nothing: its epoch no longer matches. On SQLite the server lock already
says that nobody else is there, so a new process takes over at once.
"""

from sqlalchemy import Executable, func, select, text, true, update

from gateway.db.engine import Database, Writer
from gateway.db.tables import leader_lease
from gateway.errors import StaleLeader

_NOW_US = {
    True: "CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)",
    False: "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS bigint)",
}


def acquire_or_renew(database: Database, holder: str, lease_seconds: float) -> int | None:
    """Take or keep the lease; give the epoch, or None while somebody else leads."""
    now = text(_NOW_US[database.is_sqlite])
    length = int(lease_seconds * 1_000_000)

    def take(writer: Writer) -> int | None:
        now_us = int(writer.connection.execute(text(f"SELECT {now.text}")).scalar_one())
        is_mine = leader_lease.c.holder == holder
        renewed = writer.connection.execute(
            update(leader_lease)
            .where(is_mine, leader_lease.c.epoch > 0)
            .values(expires_us=now_us + length)
            .returning(leader_lease.c.epoch)
        ).scalar_one_or_none()
        if renewed is not None:
            return int(renewed)
        taken = writer.connection.execute(
            update(leader_lease)
            # A SQLite file is opened by one server only, so whoever asks may have it.
            .where(true() if writer.is_sqlite else leader_lease.c.expires_us < now_us)
            .values(holder=holder, epoch=leader_lease.c.epoch + 1, expires_us=now_us + length)
            .returning(leader_lease.c.epoch)
        ).scalar_one_or_none()
        return None if taken is None else int(taken)

    return database.run_write(take)


def require_epoch(writer: Writer, epoch: int) -> None:
    """Make sure that this epoch still leads, until this transaction ends.

    Raises:
        StaleLeader: somebody else took over.
    """
    is_it = leader_lease.c.epoch == epoch
    statement: Executable = (
        # The no-op update takes SQLite's only lock, as every write does.
        update(leader_lease).where(is_it).values(epoch=epoch).returning(leader_lease.c.epoch)
        if writer.is_sqlite
        # Shared by all that this leader writes at a time; a take-over waits for each of them. What
        # a leader writes it names by key, but while statistics lag behind, all that wait look
        # cheaper to PostgreSQL than a hundred keys: said here, that costs no round trip.
        else select(leader_lease.c.epoch, func.set_config("enable_seqscan", "off", True))
        .where(is_it)
        .with_for_update(read=True)
    )
    found = writer.connection.execute(statement).scalar_one_or_none()
    if found is None:
        raise StaleLeader(f"epoch {epoch} no longer leads", hint="stand down")


def release(database: Database, holder: str) -> None:
    """Give the lease up, so that another replica need not wait for it to run out."""
    database.run_write(
        lambda writer: writer.connection.execute(
            update(leader_lease)
            .where(leader_lease.c.holder == holder)
            .values(expires_us=0, holder="")
        )
    )
