"""Transactions: one class, two databases.

SQLite has one writer at a time, who waits in line here. PostgreSQL writes run at READ COMMITTED
with the constraints as the last wall. No network call may happen inside a transaction.
"""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar, cast

from sqlalchemy import Connection, Engine, RowMapping, Table, text
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DataError, DBAPIError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from gateway.db.connecting import postgresql_engine, sqlite_reading, sqlite_writing
from gateway.db.group_commit import GroupCommit, Item, Store, store_each
from gateway.errors import DatabaseUnavailable, InvalidInput, StartupRefused

Result = TypeVar("Result")
Row = RowMapping
"""One row of an answer, by column name."""
__all__ = ["Connection", "Database", "Row", "Writer", "open_database"]
RETRYABLE = frozenset({"40001", "40P01", "55P03"})
"""PostgreSQL: serialization failure, deadlock, lock not available."""


class Writer:
    """One write transaction."""

    def __init__(self, connection: Connection, *, is_sqlite: bool) -> None:
        """Wrap an open transaction."""
        self.connection = connection
        self.is_sqlite = is_sqlite
        self._xact_id: int | None = None
        self._generation: int | None = None

    def inserting(self, table: Table) -> sqlite.Insert | postgresql.Insert:
        """Give an insert that can say what happens where the row exists already."""
        # The standard has no words for it; both databases have the same ones.
        return sqlite.insert(table) if self.is_sqlite else postgresql.insert(table)

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

    def __init__(self, engine: Engine, writing: Engine | None = None) -> None:
        """Wrap engines made by `open_database`; `writing` when writes have one of their own."""
        self.engine = engine
        self._writing = writing or engine
        self.is_sqlite = engine.dialect.name == "sqlite"
        self._turn = threading.Lock()
        self._groups: dict[Any, GroupCommit[Any, Any]] = {}
        self._group_lock = threading.Lock()

    @contextmanager
    def write(self) -> Iterator[Writer]:
        """Give one write transaction; commits at the end, rolls back on any error."""
        # On SQLite BEGIN IMMEDIATE: a read that turns into a write later could not be repeated.
        with _translated(), self._my_turn(), self._writing.begin() as connection:
            yield Writer(connection, is_sqlite=self.is_sqlite)

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Give one consistent read."""
        options: dict[str, Any] = {}
        if not self.is_sqlite:
            # Several statements of one answer must see one moment; READ COMMITTED would show two.
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
                # 20 to 160 ms: longer than a transaction, much shorter than a lease.
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
        self._writing.dispose()

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
    # Alone it needs no savepoint: the transaction itself takes it back.
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
        return Database(sqlite_reading(parsed, pool_size), sqlite_writing(parsed))
    if parsed.get_backend_name() == "postgresql":
        return Database(postgresql_engine(parsed, pool_size, has_pooler=has_pooler))
    raise StartupRefused(
        f"no support for {parsed.get_backend_name()}",
        allowed=("sqlite", "postgresql"),
        hint="set TRAINING_GATEWAY_DATABASE_URL to sqlite:///FILE or postgresql://...",
    )


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
    # The driver's text names host and user; only its first line is told.
    except (OperationalError, PoolTimeout) as error:
        raise DatabaseUnavailable(
            f"the database does not answer: {_first_line(error)}", hint="try again shortly"
        ) from error
    except DBAPIError as error:
        # A server that restarts ends connections in many ways, some of them no OperationalError.
        if error.connection_invalidated:
            raise DatabaseUnavailable("the database connection broke", hint="try again") from error
        raise


def _first_line(error: Exception) -> str:
    cause = getattr(error, "orig", None) or error
    return (str(cause).splitlines() or [""])[0][:200]


def _is_retryable(error: BaseException | None) -> bool:
    cause = getattr(error, "orig", None)
    return getattr(cause, "sqlstate", None) in RETRYABLE or "database is locked" in str(cause)
