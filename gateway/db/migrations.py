"""Brings a database to this release's schema, and refuses to work on any other.

The migration files lie in `migrations/` of a checkout and inside the package of an installed wheel.
"""

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, text

from gateway.db.connecting import LOCK_TIMEOUT_MS
from gateway.db.engine import Database, open_database
from gateway.db.seeding import seed
from gateway.errors import StartupRefused

LOCK_KEY = 7_203_114_905
"""PostgreSQL advisory lock, held for one migration transaction: one migrator at a time."""
TURN_SECONDS = 300
"""How long a migrator waits for another one."""


def script_location() -> Path:
    """Find the migration files."""
    package = Path(__file__).resolve().parents[1]
    # The wheel carries them inside the package; a checkout has them beside it.
    installed, checkout = package / "_migrations", package.parent / "migrations"
    return installed if installed.is_dir() else checkout


def configuration(connection: Connection | None = None) -> Config:
    """Give Alembic's configuration for a connection."""
    config = Config()
    # Alembic reads its options through configparser, to which a percent sign is the start of a
    # name.
    config.set_main_option("script_location", str(script_location()).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config


def newest_revision() -> str:
    """Give the revision that this release works with."""
    head = ScriptDirectory.from_config(configuration()).get_current_head()
    if head is None:
        raise StartupRefused("no migration files found", hint="the installation is broken")
    return head


def upgrade(url: str) -> str:
    """Create or migrate the schema, and the queue and flavor `default`; give the revision.

    Safe to run twice, and at once with another migrator: the second waits and finds it done.
    """
    database = open_database(url, pool_size=1)
    try:
        # Before anything is locked: a newer schema is no reason to make servers wait.
        _refuse_unknown(database)
        # One transaction for all steps: DDL rolls back on both databases, so half a schema never
        # stays.
        with database.write() as writer:
            if not database.is_sqlite:
                _line_up(writer.connection)
            command.upgrade(configuration(writer.connection), "head")
            seed(writer)
        return newest_revision()
    finally:
        database.close()


def _line_up(connection: Connection) -> None:
    """Wait for another migrator; then wait for no table long, so that servers are not held up."""
    for statement in (
        "SET LOCAL statement_timeout = 0",
        f"SET LOCAL lock_timeout = '{TURN_SECONDS}s'",
        f"SELECT pg_advisory_xact_lock({LOCK_KEY})",
        # A long wait for a table would hold up every query that comes behind it.
        f"SET LOCAL lock_timeout = {LOCK_TIMEOUT_MS}",
    ):
        connection.execute(text(statement))


def current_revision(database: Database) -> str | None:
    """Give the schema's revision; None for an empty database."""
    with database.engine.connect() as connection:
        return MigrationContext.configure(connection).get_current_revision()


def check_head(database: Database) -> None:
    """Make sure that the schema is this release's.

    Raises:
        StartupRefused: it is older, newer or missing; the hint says what to run.
    """
    found, wanted = current_revision(database), newest_revision()
    if found == wanted:
        return
    _refuse_unknown(database)
    raise StartupRefused(
        f"the database is at revision {found or 'none'}, this release works with {wanted}",
        hint="run: gateway db upgrade",
    )


def _refuse_unknown(database: Database) -> None:
    found = current_revision(database)
    known = {
        script.revision for script in ScriptDirectory.from_config(configuration()).walk_revisions()
    }
    if found is not None and found not in known:
        raise StartupRefused(
            f"the database is at revision {found}, which this release does not know",
            value=found,
            hint="it was migrated by a newer release: install that one, "
            "or restore a backup and run: gateway db upgrade",
        )
