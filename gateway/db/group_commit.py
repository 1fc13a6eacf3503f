"""Group commit: writes of concurrent threads share one transaction, each in its own savepoint.

Whoever finds no batch running leads the next one; whoever comes meanwhile waits and is taken along.
There is no timer, so a lone writer waits for nobody. A failing write rolls back alone; a failing
commit fails everybody in the batch, and nobody was told otherwise.
"""

import threading
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from gateway.db.engine import Writer

Result = TypeVar("Result")
MAX_BATCH = 128


class _Entry:
    """One thread's write, and what came of it."""

    def __init__(self, work: "Callable[[Writer], Any]") -> None:
        self.work = work
        self.is_done = threading.Event()
        self.result: Any = None
        self.error: Exception | None = None


class GroupCommit:
    """Collects writes and commits them together."""

    def __init__(self, transact: "Callable[[Callable[[Writer], None]], None]") -> None:
        """Use this function to run one transaction."""
        self._transact = transact
        self._waiting: deque[_Entry] = deque()
        self._lock = threading.Lock()
        self._leader = threading.Lock()

    def run(self, work: "Callable[[Writer], Result]") -> Result:
        """Run a write and return once it is durable; raises what the write or commit raised."""
        entry = _Entry(work)
        with self._lock:
            self._waiting.append(entry)
        while not entry.is_done.is_set():
            with self._leader:
                if not entry.is_done.is_set():
                    self._commit_batch()
        if entry.error is not None:
            raise entry.error
        result: Result = entry.result
        return result

    def _commit_batch(self) -> None:
        with self._lock:
            batch = [self._waiting.popleft() for _ in range(min(MAX_BATCH, len(self._waiting)))]
        try:
            self._transact(lambda writer: _run_all(writer, batch))
        except Exception as error:  # noqa: BLE001 - every waiting thread must hear of it
            for entry in batch:
                entry.error = error
        for entry in batch:
            entry.is_done.set()


def _run_all(writer: "Writer", batch: list[_Entry]) -> None:
    """Run each write in its savepoint; a retry of the whole transaction starts afresh."""
    for entry in batch:
        entry.error = None
        try:
            with writer.connection.begin_nested():
                entry.result = entry.work(writer)
        except Exception as error:  # noqa: BLE001 - handed to the thread it belongs to
            entry.error = error
