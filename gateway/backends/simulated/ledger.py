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
from gateway.errors import ClusterUnreachable


class Ledger:
    """The one place that owns the cluster's state; safe for several threads and processes."""

    def __init__(self, state_file: Path | None) -> None:
        """Read the file when it exists; without a path the state lives in memory only."""
        self._file = state_file
        # flock(2) parts processes; this one parts threads where there is no file to lock.
        self._lock = threading.RLock()
        self._cluster = VirtualCluster()
        self._stamp: tuple[int, int] | None = None
        if state_file is not None:
            state_file.parent.mkdir(parents=True, exist_ok=True)

    @contextmanager
    def reading(self) -> Iterator[VirtualCluster]:
        """Give the state; what is changed in here need not be kept."""
        # Read under the same exclusive lock, for a reader may settle the shared object in memory.
        with self._lock, _answering(self._file), self._file_lock():
            self._refresh()
            yield self._cluster

    @contextmanager
    def changing(self) -> Iterator[VirtualCluster]:
        """Give the state and store it durably when the block ends without an error."""
        with self._lock, _answering(self._file), self._file_lock():
            self._refresh()
            # Until the store has worked the file is right and the memory is not: after a block that
            # raised half-way, or on a full disk, the next one reads again.
            self._stamp = None
            yield self._cluster
            self._store()

    @contextmanager
    def _file_lock(self) -> Iterator[None]:
        if self._file is None:
            yield
            return
        # A file beside the state: a replaced state is another inode, and its lock another lock.
        with self._file.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _refresh(self) -> None:
        if self._file is None:
            return
        if not self._file.exists():
            self._cluster, self._stamp = VirtualCluster(), None
            return
        stamp = self._read_stamp(self._file)
        # Each replacement is a new inode; the time tells where an inode number was used again.
        if stamp != self._stamp:
            self._cluster = _read(self._file)
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


def _read(file: Path) -> VirtualCluster:
    """Read a state file; raises ClusterUnreachable for what this release did not write."""
    try:
        return from_json(json.loads(file.read_text("utf-8")))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ClusterUnreachable(
            f"the state file {file} is not this release's: {type(error).__name__}: {error}",
            value=str(file),
            hint="move it away to begin with an empty virtual cluster",
        ) from error


@contextmanager
def _answering(file: Path | None) -> Iterator[None]:
    """Report a disk that is full, or a folder that went away, as the protocol does."""
    try:
        yield
    except OSError as error:
        raise ClusterUnreachable(
            f"the state file {file} cannot be used: {error}",
            value=str(file or ""),
            hint="look at the disk and try again",
        ) from error
