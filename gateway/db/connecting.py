"""Connections to both databases, set up so that what is acknowledged is on the disk.

SQLite runs in WAL with full sync; writes begin with BEGIN IMMEDIATE, so that nobody meets a lock
half-way, and all use one connection, whose page cache stays warm because nobody else writes.
PostgreSQL gets limits on waiting, and nothing that a transaction pooler would mix up.
"""

import sqlite3
import time
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL
from sqlalchemy.exc import DisconnectionError
from sqlalchemy.pool import ConnectionPoolEntry

from gateway.errors import StartupRefused

LOCK_TIMEOUT_MS: Final = 5_000
STATEMENT_TIMEOUT_MS: Final = 30_000
MOST_EXTRA: Final = 48
"""Connections beyond the pool that a burst may open."""
BUSY_SECONDS: Final = 10
"""How long a connection waits for a file that others have locked."""
BUSY_PAUSE_SECONDS: Final = 0.02
IDLE_SECONDS: Final = 2.0
"""How long a connection may have lain idle and still be taken without a look whether it lives."""
_PRAGMAS: Final = (
    f"busy_timeout={BUSY_SECONDS * 1000}",
    "journal_mode=WAL",
    "synchronous=FULL",
    "foreign_keys=ON",
    # Else REPLACE deletes a row behind the back of the trigger that keeps history.
    "recursive_triggers=ON",
    "wal_autocheckpoint=4000",
)
WRITER_CACHE_KIB: Final = 64 * 1024


def sqlite_reading(url: URL, pool_size: int) -> Engine:
    """Give an engine whose transactions read; raises StartupRefused for a database in memory."""
    if not url.database or url.database == ":memory:":
        raise StartupRefused("SQLite needs a file", hint="use sqlite:////absolute/path/gateway.db")
    Path(url.database).parent.mkdir(parents=True, exist_ok=True)
    return _sqlite(url, "BEGIN", _PRAGMAS, pool_size=pool_size, max_overflow=MOST_EXTRA)


def sqlite_writing(url: URL) -> Engine:
    """Give an engine of one connection whose transactions write."""
    pragmas = (*_PRAGMAS, f"cache_size=-{WRITER_CACHE_KIB}")
    return _sqlite(url, "BEGIN IMMEDIATE", pragmas, pool_size=1, max_overflow=0)


def _sqlite(url: URL, begin_with: str, pragmas: tuple[str, ...], **pool: int) -> Engine:
    engine = create_engine(url, connect_args={"check_same_thread": False}, **pool)

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, _record: object) -> None:
        connection.isolation_level = None  # the driver's own BEGIN comes late and is deferred
        for pragma in pragmas:
            _set(connection, f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        connection.exec_driver_sql(begin_with)

    return engine


def _set(connection: Any, pragma: str) -> None:
    """Set one pragma, however busy the file is."""
    give_up_at = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute(pragma)
        except sqlite3.OperationalError as error:
            # Two that turn a new file to WAL at once are refused at once, whatever busy_timeout
            # says: each holds what the other waits for.
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > give_up_at:
                raise
            time.sleep(BUSY_PAUSE_SECONDS)
        else:
            return


def postgresql_engine(url: URL, pool_size: int, *, has_pooler: bool) -> Engine:
    """Give an engine; with a pooler in between nothing is prepared or set for a session."""
    limits = {
        "lock_timeout": LOCK_TIMEOUT_MS,
        "statement_timeout": STATEMENT_TIMEOUT_MS,
        # A plan that is thought dear would be compiled for 40 ms; no statement here is worth that.
        "jit": "off",
    }
    arguments: dict[str, Any] = {"connect_timeout": 5}
    if has_pooler:
        arguments["prepare_threshold"] = None
    else:
        arguments["options"] = " ".join(f"-c {name}={value}" for name, value in limits.items())
    engine = create_engine(
        url.set(drivername="postgresql+psycopg"),
        pool_size=pool_size,
        max_overflow=MOST_EXTRA,
        pool_timeout=10,
        connect_args=arguments,
    )
    _look_after_rest(engine)
    if has_pooler:
        # A pooled server connection is somebody else's after the commit: set for this one only.
        wanted = "; ".join(f"SET LOCAL {name} = {value}" for name, value in limits.items())
        event.listen(engine, "begin", lambda connection: connection.exec_driver_sql(wanted))
    return engine


def _look_after_rest(engine: Engine) -> None:
    """Replace connections that died while they lay idle.

    Asked before each transaction, as the pool's own ping does it, it would cost each of them a
    round trip more. One that breaks right after use costs one caller his answer, as one that
    breaks in use does; the pool then replaces all of them.
    """

    @event.listens_for(engine, "checkin")
    def note(_connection: object, record: ConnectionPoolEntry) -> None:
        record.info["used_at"] = time.monotonic()

    @event.listens_for(engine, "checkout")
    def look(connection: Any, record: ConnectionPoolEntry, _proxy: object) -> None:
        used_at = record.info.get("used_at")
        if used_at is None or time.monotonic() - used_at < IDLE_SECONDS:
            return
        try:
            engine.dialect.do_ping(connection)
        except engine.dialect.loaded_dbapi.Error as error:
            # What the pool understands: it takes another connection.
            raise DisconnectionError("the connection broke while it lay idle") from error
