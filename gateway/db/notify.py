"""Wake-ups between replicas: PostgreSQL's NOTIFY, heard on a direct connection of its own.

A wake-up carries nothing and may be lost; the ticks find the work then. SQLite has one process,
which wakes itself. Behind a transaction pooler LISTEN does not work, so nobody listens there.
"""

from types import TracebackType
from typing import Final, Self

import psycopg
from sqlalchemy import text
from sqlalchemy.engine import make_url

from gateway.db.engine import Database
from gateway.errors import DatabaseUnavailable

CHANNEL: Final = "training_gateway_wake"


def announce(database: Database) -> None:
    """Wake whoever leads, in another process; nothing to do on SQLite."""
    if database.is_sqlite:
        return
    with database.write() as writer:
        writer.connection.execute(text("SELECT pg_notify(:channel, '')"), {"channel": CHANNEL})


class Listener:
    """A connection that hears wake-ups."""

    def __init__(self, url: str) -> None:
        """Connect to PostgreSQL and listen; raises DatabaseUnavailable."""
        plain = make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
        try:
            self._connection = psycopg.connect(plain, autocommit=True, connect_timeout=5)
            self._connection.execute(f"LISTEN {CHANNEL}")
        except psycopg.OperationalError as error:
            raise DatabaseUnavailable("cannot listen for wake-ups", hint="try again") from error

    def wait(self, timeout_seconds: float) -> bool:
        """Wait for a wake-up; True when one came. Raises DatabaseUnavailable on a broken line."""
        try:
            heard = self._connection.notifies(timeout=timeout_seconds, stop_after=1)
            return any(True for _ in heard)
        except psycopg.OperationalError as error:
            raise DatabaseUnavailable("the wake-up line broke", hint="connect again") from error

    def close(self) -> None:
        """Hang up."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
