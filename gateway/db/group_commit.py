"""Group commit: writes of concurrent threads share one transaction, each in its own savepoint.

Whoever finds no batch running leads the next one; whoever comes meanwhile waits, and the first of
them leads when the batch is through. There is no timer, so a lone writer waits for nobody, and each
thread is woken once, by its own answer. A failing write rolls back alone; a failing commit fails
everybody in the batch, and nobody was told otherwise.
"""

import threading
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from sqlalchemy.exc import OperationalError, PendingRollbackError

if TYPE_CHECKING:
    from gateway.db.engine import Writer

Result = TypeVar("Result")
MAX_BATCH = 128


class _Entry:
    """One thread's write, and what came of it."""

    def __init__(self, work: "Callable[[Writer], Any]") -> None:
        self.work = work
        self.wake = threading.Event()
        """Set when it is done, or when its thread is to lead."""
        self.is_done = False
        self.result: Any = None
        self.error: Exception | None = None


class _Kept:
    """Keeps an exception instead of raising it; anything worse than an Exception passes."""

    error: Exception | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        error: BaseException | None,
        _trace: TracebackType | None,
    ) -> bool:
        if isinstance(error, Exception):
            self.error = error
            return True
        return False


class GroupCommit:
    """Collects writes and commits them together."""

    def __init__(self, transact: "Callable[[Callable[[Writer], None]], None]") -> None:
        """Use this function to run one transaction."""
        self._transact = transact
        self._lock = threading.Lock()
        self._waiting: deque[_Entry] = deque()
        self._is_led = False

    def run(self, work: "Callable[[Writer], Result]") -> Result:
        """Run a write and return once it is durable; raises what the write or commit raised."""
        entry = _Entry(work)
        if self._join(entry):
            entry.wake.wait()
        if not entry.is_done:
            self._lead()
        if entry.error is not None:
            raise entry.error
        result: Result = entry.result
        return result

    def _join(self, entry: _Entry) -> bool:
        """Line up; True when somebody leads already."""
        with self._lock:
            self._waiting.append(entry)
            is_led, self._is_led = self._is_led, True
            return is_led

    def _lead(self) -> None:
        """Commit one batch, which holds the own entry, and pass the lead on."""
        with self._lock:
            batch = [self._waiting.popleft() for _ in range(min(MAX_BATCH, len(self._waiting)))]
        try:
            with _Kept() as kept:
                self._transact(lambda writer: _run_all(writer, batch))
            if kept.error is not None:
                for entry in batch:
                    entry.error = kept.error
        finally:
            for entry in batch:
                entry.is_done = True
                entry.wake.set()
            self._pass_on()

    def _pass_on(self) -> None:
        with self._lock:
            if self._waiting:
                self._waiting[0].wake.set()
            else:
                self._is_led = False


def _run_all(writer: "Writer", batch: list[_Entry]) -> None:
    """Run each write in its savepoint; a retry of the whole transaction starts afresh."""
    for entry in batch:
        with _Kept() as kept, writer.savepoint():
            entry.result = entry.work(writer)
        entry.error = kept.error
        if isinstance(kept.error, OperationalError | PendingRollbackError):
            # A full disk, a deadlock or a lost connection ends the whole transaction, not just
            # the savepoint (SQLite may roll back silently), so nobody may be told of success.
            raise kept.error
