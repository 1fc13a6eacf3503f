"""Connections and transactions: one class, two databases.

SQLite writes begin with BEGIN IMMEDIATE, in WAL with full sync, so that a commit that was
acknowledged is on the disk and nobody meets a lock half-way. PostgreSQL writes run at READ
COMMITTED with the constraints as the last wall. No network call may happen inside a transaction.
"""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar, cast

from sqlalchemy import Connection, Engine, RowMapping, create_engine, event, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import DataError, DBAPIError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from gateway.db.group_commit import GroupCommit, Item, Store, store_each
from gateway.errors import DatabaseUnavailable, InvalidInput, StartupRefused

Result = TypeVar("Result")
Row = RowMapping
"""One row of an answer, by column name."""
__all__ = ["Connection", "Database", "Row", "Writer", "open_database"]
RETRYABLE = frozenset({"40001", "40P01", "55P03"})
"""PostgreSQL: serialization failure, deadlock, lock not available."""
LOCK_TIMEOUT_MS = 5_000
STATEMENT_TIMEOUT_MS = 30_000


class Writer:
    """One write transaction."""

    def __init__(self, connection: Connection, *, is_sqlite: bool) -> None:
        """Wrap an open transaction."""
        self.connection = connection
        self.is_sqlite = is_sqlite
        self._xact_id: int | None = None
        self._generation: int | None = None

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        """Roll back only what happened inside when it raises."""
        with self.connection.begin_nested():
            yield

    @property
    def generation(self) -> int:
        """Generation of the definitions, read once together with the transaction's number."""
        if self._generation is None:
            statement = (
                "UPDATE gateway_state SET write_counter = write_counter + 1"
                " RETURNING write_counter, config_generation"
                if self.is_sqlite
                else "SELECT CAST(CAST(pg_current_xact_id() AS text) AS bigint), config_generation"
                " FROM gateway_state"
            )
            found = self.connection.execute(text(statement)).one()
            self._xact_id, self._generation = int(found[0]), int(found[1])
        return self._generation

    @property
    def xact_id(self) -> int:
        """Number of this transaction, to be written into each mirrored row it touches."""
        if self._xact_id is None:
            statement = (
                "UPDATE gateway_state SET write_counter = write_counter + 1 RETURNING write_counter"
                if self.is_sqlite
                else "SELECT CAST(CAST(pg_current_xact_id() AS text) AS bigint)"
            )
            self._xact_id = int(self.connection.execute(text(statement)).scalar_one())
        return self._xact_id


class Database:
    """An open database."""

    def __init__(self, engine: Engine) -> None:
        """Wrap an engine made by `open_database`."""
        self.engine = engine
        self.is_sqlite = engine.dialect.name == "sqlite"
        self._turn = threading.Lock()
        self._groups: dict[Any, GroupCommit[Any, Any]] = {}
        self._group_lock = threading.Lock()

    @contextmanager
    def write(self) -> Iterator[Writer]:
        """Give one write transaction; commits at the end, rolls back on any error."""
        with _translated(), self._my_turn(), self.engine.connect() as opened:
            connection = opened.execution_options(gateway_write=True)
            with connection.begin():
                yield Writer(connection, is_sqlite=self.is_sqlite)

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Give one consistent read."""
        options: dict[str, Any] = {}
        if not self.is_sqlite:
            options = {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
        with _translated(), self.engine.connect() as opened:
            connection = opened.execution_options(**options)
            with connection.begin():
                yield connection

    def run_write(self, work: Callable[[Writer], Result], attempts: int = 5) -> Result:
        """Run one write transaction, again after a deadlock or serialization failure."""
        for attempt in range(1, attempts + 1):
            try:
                with self.write() as writer:
                    return work(writer)
            except DatabaseUnavailable as error:
                if attempt == attempts or not _is_retryable(error.__cause__):
                    raise
                time.sleep(0.01 * 2**attempt)
        raise DatabaseUnavailable("no attempt was made", hint="attempts must be at least 1")

    def run_grouped(self, work: Callable[[Writer], Result]) -> Result:
        """Run a short write in a transaction that concurrent callers share."""
        return cast(Result, self.run_together(_run_each, work))

    def run_together(self, store: Store[Item, Result], item: Item) -> Result:
        """Store an item in a transaction with those that other threads store by this function."""
        with self._group_lock:
            group = self._groups.get(store)
            if group is None:
                group = self._groups[store] = GroupCommit(self.run_write, store)
        with _translated():
            return cast(Result, group.run(item))

    def close(self) -> None:
        """Close every connection."""
        self.engine.dispose()

    @contextmanager
    def _my_turn(self) -> Iterator[None]:
        """Queue SQLite's writers in this process, fairly, instead of polling its lock."""
        if not self.is_sqlite:
            yield
            return
        with self._turn:
            yield


def _run_each(
    writer: Writer, works: Sequence[Callable[[Writer], Any]]
) -> Sequence[Any | Exception]:
    if len(works) == 1:
        return [works[0](writer)]
    return [outcome for work in works for outcome in store_each(writer, [work], _run_each)]


def open_database(url: str, *, pool_size: int = 16, has_pooler: bool = False) -> Database:
    """Open a database by URL: `sqlite:///file.db` or `postgresql://...`.

    Args:
        url: where it is; an in-memory SQLite is refused, since each thread would get its own.
        pool_size: connections kept.
        has_pooler: a transaction pooler stands in between, so no prepared statements.

    Raises:
        StartupRefused: another kind of database, or an in-memory SQLite.
    """
    parsed = make_url(url)
    if parsed.get_backend_name() == "sqlite":
        return Database(_open_sqlite(parsed, pool_size))
    if parsed.get_backend_name() == "postgresql":
        return Database(_open_postgresql(parsed, pool_size, has_pooler=has_pooler))
    raise StartupRefused(
        f"no support for {parsed.get_backend_name()}",
        allowed=("sqlite", "postgresql"),
        hint="set TRAINING_GATEWAY_DATABASE_URL to sqlite:///FILE or postgresql://...",
    )


def _open_sqlite(url: URL, pool_size: int) -> Engine:
    if not url.database or url.database == ":memory:":
        raise StartupRefused("SQLite needs a file", hint="use sqlite:////absolute/path/gateway.db")
    Path(url.database).parent.mkdir(parents=True, exist_ok=True)
    engine = create_engine(
        url,
        pool_size=pool_size,
        max_overflow=48,
        connect_args={"check_same_thread": False},
    )

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, _record: object) -> None:
        connection.isolation_level = None  # the driver's own BEGIN comes late and is deferred
        for pragma in (
            "journal_mode=WAL",
            "synchronous=FULL",
            "foreign_keys=ON",
            "busy_timeout=10000",
            "wal_autocheckpoint=4000",
        ):
            connection.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        is_write = connection.get_execution_options().get("gateway_write", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if is_write else "BEGIN")

    return engine


def _open_postgresql(url: URL, pool_size: int, *, has_pooler: bool) -> Engine:
    limits = {"lock_timeout": LOCK_TIMEOUT_MS, "statement_timeout": STATEMENT_TIMEOUT_MS}
    arguments: dict[str, Any] = {"connect_timeout": 5}
    if has_pooler:
        arguments["prepare_threshold"] = None
    else:
        arguments["options"] = " ".join(f"-c {name}={value}" for name, value in limits.items())
    engine = create_engine(
        url.set(drivername="postgresql+psycopg"),
        pool_size=pool_size,
        max_overflow=48,
        pool_pre_ping=True,
        pool_timeout=10,
        connect_args=arguments,
    )
    if has_pooler:
        # A pooled server connection is somebody else's after the commit: set for this one only.
        wanted = "; ".join(f"SET LOCAL {name} = {value}" for name, value in limits.items())
        event.listen(engine, "begin", lambda connection: connection.exec_driver_sql(wanted))
    return engine


@contextmanager
def _translated() -> Iterator[None]:
    """Turn what the driver raises for a missing, locked or broken server into our own error.

    A value that the database cannot take is the caller's fault, wherever it slipped through.
    """
    try:
        yield
    except (DataError, OverflowError, UnicodeEncodeError) as error:
        raise InvalidInput(
            f"a value cannot be stored: {_first_line(error)}",
            hint="remove control characters and broken Unicode; numbers have at most 63 bits",
        ) from error
    except (OperationalError, PoolTimeout) as error:
        raise DatabaseUnavailable(
            f"the database does not answer: {_first_line(error)}", hint="try again shortly"
        ) from error
    except DBAPIError as error:
        if error.connection_invalidated:
            raise DatabaseUnavailable("the database connection broke", hint="try again") from error
        raise


def _first_line(error: Exception) -> str:
    cause = getattr(error, "orig", None) or error
    return (str(cause).splitlines() or [""])[0][:200]


def _is_retryable(error: BaseException | None) -> bool:
    cause = getattr(error, "orig", None)
    return getattr(cause, "sqlstate", None) in RETRYABLE or "database is locked" in str(cause)
