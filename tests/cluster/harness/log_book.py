"""Keeps what the containers of the fake kubelet "printed", and lets readers follow it."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

Line = tuple[datetime, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What the API server asks a kubelet for, by its query parameters."""

    follow: bool = False
    previous: bool = False
    timestamps: bool = False
    tail: int | None = None
    since: datetime | None = None

    @classmethod
    def from_query(cls, query: dict[str, str]) -> "Reading":
        """Read the parameters of a request for logs."""
        since = None
        if "sinceSeconds" in query:
            since = datetime.now(UTC) - timedelta(seconds=int(query["sinceSeconds"]))
        if "sinceTime" in query:
            since = datetime.fromisoformat(query["sinceTime"])
        return cls(
            follow=query.get("follow") == "true",
            previous=query.get("previous") == "true",
            timestamps=query.get("timestamps") == "true",
            tail=int(query["tailLines"]) if "tailLines" in query else None,
            since=since,
        )


@dataclass(slots=True)
class ContainerLog:
    """The lines of one container of one pod."""

    lines: list[Line] = field(default_factory=list)
    previous: list[Line] = field(default_factory=list)
    is_open: bool = True


class LogBook:
    """All logs, by namespace, pod and container; safe for readers in other threads."""

    def __init__(self) -> None:
        self._logs: dict[tuple[str, str, str], ContainerLog] = {}
        self._changed = threading.Condition()
        self._is_closed = False

    def begin(self, key: tuple[str, str, str], *, is_restart: bool) -> None:
        """Start a container's log; a restart keeps the lines before as the previous ones."""
        with self._changed:
            old = self._logs.get(key)
            previous = old.lines if old and is_restart else []
            if old:
                old.is_open = False
            self._logs[key] = ContainerLog(previous=previous)
            self._changed.notify_all()

    def write(self, key: tuple[str, str, str], text: str) -> None:
        """Add one line."""
        with self._changed:
            self._logs.setdefault(key, ContainerLog()).lines.append((datetime.now(UTC), text))
            self._changed.notify_all()

    def end(self, key: tuple[str, str, str]) -> None:
        """Say that no line will follow; followers end."""
        with self._changed:
            if key in self._logs:
                self._logs[key].is_open = False
            self._changed.notify_all()

    def close(self) -> None:
        """Send all followers home."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def read(self, key: tuple[str, str, str], reading: Reading) -> Iterator[str] | None:
        """Give the lines wanted, each with its line end; None where there is no such log."""
        with self._changed:
            log = self._logs.get(key)
        if log is None:
            return None
        return self._lines(log, reading)

    def _lines(self, log: ContainerLog, reading: Reading) -> Iterator[str]:
        with self._changed:
            source = log.previous if reading.previous else log.lines
            total = len(source)
        position = max(0, total - reading.tail) if reading.tail is not None else 0
        while True:
            with self._changed:
                fresh = source[position:]
                is_over = self._is_closed or not log.is_open or not reading.follow
                if not fresh and not is_over:
                    self._changed.wait()
                    continue
            if not fresh:
                return
            position += len(fresh)
            yield from (
                render(line, reading)
                for line in fresh
                if not reading.since or line[0] >= reading.since
            )


def render(line: Line, reading: Reading) -> str:
    """Give one line as a kubelet sends it."""
    at, text = line
    prefix = f"{at.isoformat().replace('+00:00', 'Z')} " if reading.timestamps else ""
    return f"{prefix}{text}\n"
