"""One server for one SQLite file: an exclusive lock that dies with its process."""

import fcntl
import os
from pathlib import Path
from typing import IO

from sqlalchemy.engine import make_url

from gateway.errors import StartupRefused


def lock_sqlite(url: str) -> IO[str] | None:
    """Take the file's server lock; give the open lock file, to be kept until the end.

    PostgreSQL needs none and gives None.

    Raises:
        StartupRefused: another server works on this file.
    """
    parsed = make_url(url)
    if parsed.get_backend_name() != "sqlite" or not parsed.database:
        return None
    path = Path(f"{parsed.database}.server-lock")
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = path.open("a+")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        lock.seek(0)
        holder = lock.read().strip() or "unknown"
        lock.close()
        raise StartupRefused(
            f"another gateway (process {holder}) already works on {parsed.database}",
            hint="stop it first, or use PostgreSQL, which serves several gateways",
        ) from error
    lock.truncate(0)
    lock.write(str(os.getpid()))
    lock.flush()
    return lock
