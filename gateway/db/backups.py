"""A consistent copy of a SQLite database while a server works on it."""

import sqlite3
from contextlib import closing
from pathlib import Path

from sqlalchemy.engine import make_url

from gateway.errors import Conflict, InvalidInput


def backup(url: str, target: Path) -> None:
    """Copy the database of this URL to a new file.

    Raises:
        InvalidInput: it is no SQLite database.
        Conflict: the target exists.
    """
    parsed = make_url(url)
    if parsed.get_backend_name() != "sqlite" or not parsed.database:
        raise InvalidInput(
            "only SQLite is copied by this command",
            value=url.rsplit("@", maxsplit=1)[-1],
            hint="use pg_dump",
        )
    if target.exists():
        raise Conflict(f"{target} exists", hint="name a new file")
    if not Path(parsed.database).exists():
        raise InvalidInput(f"{parsed.database} does not exist", hint="run: gateway db upgrade")
    with (
        closing(sqlite3.connect(parsed.database)) as source,
        closing(sqlite3.connect(target)) as copy,
    ):
        source.backup(copy)
