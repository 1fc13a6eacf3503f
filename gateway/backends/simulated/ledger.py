"""Keeps the virtual cluster in memory, and in a JSON file where one is given.

The file is replaced atomically and synced after each change, and read again when another process
changed it, so a kill at any point leaves either the old or the new state.
"""

import fcntl
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gateway.backends.durable import write_json
from gateway.backends.simulated.objects import VirtualCluster, from_json, to_json


class Ledger:
    """The one place that owns the cluster's state; safe for several threads and processes."""

    def __init__(self, state_file: Path | None) -> None:
        """Read the file when it exists; without a path the state lives in memory only."""
        self._file = state_file
        self._lock = threading.RLock()
        self._cluster = VirtualCluster()
        self._stamp: tuple[int, int] | None = None
        if state_file is not None:
            state_file.parent.mkdir(parents=True, exist_ok=True)

    @contextmanager
    def reading(self) -> Iterator[VirtualCluster]:
        """Give the state; what is changed in here need not be kept."""
        with self._lock, self._file_lock():
            self._refresh()
            yield self._cluster

    @contextmanager
    def changing(self) -> Iterator[VirtualCluster]:
        """Give the state and store it durably when the block ends without an error."""
        with self._lock, self._file_lock():
            self._refresh()
            yield self._cluster
            self._store()

    @contextmanager
    def _file_lock(self) -> Iterator[None]:
        if self._file is None:
            yield
            return
        with self._file.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _refresh(self) -> None:
        if self._file is None or not self._file.exists():
            return
        stamp = self._read_stamp(self._file)
        if stamp != self._stamp:
            self._cluster = from_json(json.loads(self._file.read_text("utf-8")))
            self._stamp = stamp

    def _store(self) -> None:
        if self._file is None:
            return
        write_json(self._file, to_json(self._cluster))
        self._stamp = self._read_stamp(self._file)

    @staticmethod
    def _read_stamp(path: Path) -> tuple[int, int]:
        status = path.stat()
        return status.st_ino, status.st_mtime_ns
