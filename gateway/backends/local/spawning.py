"""Starts supervisor programs so that they outlive this one, and reaps those that ended.

What a supervisor does is its own concern; whether one is needed is the back end's.
"""

import os
import sys
import time
from typing import Final

from gateway.backends.local.folder import AttemptFolder

MODULE: Final = "gateway.backends.local.supervisor"
AGAIN_SECONDS: Final = 10.0
"""A supervisor that has not introduced itself for so long is started again."""


class Spawner:
    """Knows the supervisors that this program started, to reap them; safe for several threads."""

    def __init__(self) -> None:
        """Start without children."""
        self._children: set[int] = set()

    def start(self, folder: AttemptFolder) -> None:
        """Start a supervisor; it ends at once where another has the attempt."""
        notes = os.open(folder.notes, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            # A session of its own, so that it outlives this program and its terminal.
            # Not fork: other threads may hold locks that a forked child would never get.
            pid = os.posix_spawn(
                sys.executable,
                [sys.executable, "-P", "-m", MODULE, str(folder.path)],
                os.environ,
                file_actions=[
                    (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                    (os.POSIX_SPAWN_DUP2, notes, 1),
                    (os.POSIX_SPAWN_DUP2, notes, 2),
                ],
                setsid=True,
            )
        finally:
            os.close(notes)
        self._children.add(pid)

    def start_again(self, folder: AttemptFolder) -> None:
        """Start one anew where the first died before it could introduce itself."""
        if folder.supervisor() is not None or folder.stopped.exists():
            return
        # Nothing in memory: the mark's age outlives a gateway, and touched it holds off others.
        if time.time() - folder.started.stat().st_mtime > AGAIN_SECONDS:
            folder.started.touch()
            self.start(folder)

    def reap(self) -> None:
        """Take note of children that ended, so that none stays a zombie."""
        for pid in tuple(self._children):
            if _has_ended(pid):
                self._children.discard(pid)


def _has_ended(child: int) -> bool:
    """Whether a child is gone; one that only waited to be reaped is reaped."""
    try:
        # By pid: waiting for any child would take the exit codes of other parts of the server.
        return os.waitpid(child, os.WNOHANG)[0] == child
    except ChildProcessError:
        return True
