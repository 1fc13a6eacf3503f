"""Fresh databases for benchmarks: files on this disk, or a server of our own with fsync on."""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count

from tests.postgresql import running

_numbers = count(1)


@contextmanager
def fresh_databases(kind: str) -> Iterator[Callable[[], str]]:
    """Give a maker of URLs of databases that nobody has used; all of them go at the end."""
    if kind == "sqlite":
        with tempfile.TemporaryDirectory() as folder:
            yield lambda: f"sqlite:///{folder}/{next(_numbers)}.db"
        return
    with running(settings=()) as server:
        yield lambda: server.url_of(server.create())
