"""Group commit: writes of concurrent threads share one transaction, and each gets its own outcome.

Whoever finds no batch running leads the next one; whoever comes meanwhile waits, and the first of
them leads when the batch is through. There is no timer, so a lone writer waits for nobody, and each
thread is woken once, by its own answer. What fails, fails alone; a failing commit fails everybody
in the batch, and nobody was told otherwise.
"""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, cast

from sqlalchemy.exc import OperationalError, PendingRollbackError

from gateway.errors import Unavailable

if TYPE_CHECKING:
    from gateway.db.engine import Writer

Item = TypeVar("Item")
Result = TypeVar("Result")
Store = Callable[["Writer", Sequence[Item]], Sequence[Result | Exception]]
"""Writes items and gives for each its result, or the error that concerns it alone."""
MAX_BATCH = 128


class _Entry(Generic[Item, Result]):
    """One thread's item, and what came of it."""

    def __init__(self, item: Item) -> None:
        self.item = item
        self.wake = threading.Event()
        """Set when there is an outcome, or when its thread is to lead."""
        self.outcome: Result | Exception | None = None
        self.is_done = False


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


class GroupCommit(Generic[Item, Result]):
    """Collects items of many threads and stores them together."""

    def __init__(
        self,
        transact: "Callable[[Callable[[Writer], Any]], Any]",
        store: "Store[Item, Result]",
    ) -> None:
        """Use `transact` to run one transaction and `store` to write in it."""
        self._transact = transact
        self._store = store
        self._lock = threading.Lock()
        self._waiting: deque[_Entry[Item, Result]] = deque()
        self._is_led = False

    def run(self, item: Item) -> Result:
        """Store an item and return once it is durable; raises what concerns it."""
        entry: _Entry[Item, Result] = _Entry(item)
        if self._join(entry):
            entry.wake.wait()
        if not entry.is_done:
            self._lead()
        if isinstance(entry.outcome, Exception):
            raise entry.outcome
        return cast(Result, entry.outcome)

    def _join(self, entry: _Entry[Item, Result]) -> bool:
        """Line up; True when somebody leads already."""
        with self._lock:
            self._waiting.append(entry)
            # Under the lock, or two threads could both find nobody leading.
            is_led, self._is_led = self._is_led, True
            return is_led

    def _lead(self) -> None:
        """Commit one batch, which holds the own entry, and pass the lead on."""
        with self._lock:
            # Bounded, so that the first of a rush is not answered only when the last is stored.
            batch = [self._waiting.popleft() for _ in range(min(MAX_BATCH, len(self._waiting)))]
        try:
            outcomes = self._commit([entry.item for entry in batch])
            for entry, outcome in zip(batch, outcomes, strict=True):
                entry.outcome = outcome
        finally:
            for entry in batch:
                entry.is_done = True
                entry.wake.set()
            self._pass_on()

    def _commit(self, items: list[Item]) -> list[Result | Exception]:
        """Store at once; if an item spoils that, again with each item in a savepoint."""
        outcomes, error = self._try(lambda writer: self._store(writer, items))
        # A database that is gone will not be there for the second try either.
        if error is not None and len(items) > 1 and not isinstance(error, Unavailable):
            outcomes, error = self._try(lambda writer: store_each(writer, items, self._store))
        return outcomes if error is None else [error] * len(items)

    def _try(
        self, write: "Callable[[Writer], Sequence[Result | Exception]]"
    ) -> tuple[list[Result | Exception], Exception | None]:
        """Run one transaction; gives its outcomes, or what made all of it fail."""
        with _Kept() as kept:
            return list(self._transact(write)), None
        return [], kept.error

    def _pass_on(self) -> None:
        with self._lock:
            if self._waiting:
                self._waiting[0].wake.set()
            else:
                self._is_led = False


def store_each(
    writer: "Writer", items: Sequence[Item], store: "Store[Item, Result]"
) -> list[Result | Exception]:
    """Store items at once; where that fails, one by one, so that the guilty one fails alone.

    Raises:
        OperationalError: a full disk, a deadlock or a lost connection. That ends the whole
            transaction and not just a savepoint (SQLite rolls back silently), so that nobody may
            be told of success.
    """
    with _Kept() as kept, writer.savepoint():
        return list(store(writer, items))
    if isinstance(kept.error, OperationalError | PendingRollbackError):
        raise kept.error
    if len(items) == 1 and kept.error is not None:
        return [kept.error]
    return [outcome for item in items for outcome in store_each(writer, [item], store)]
