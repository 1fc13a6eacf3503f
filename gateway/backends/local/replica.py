"""Runs one replica's program and makes sure that nothing of it outlives its supervisor.

Started by path with `-I -S`, so it uses the standard library alone:

    replica.py SUPERVISOR_PID PROGRAM [ARGUMENT...]

It leads a group of its own. When the supervisor dies, however, the kernel sends SIGUSR1 here, and
the whole group is killed; when this program itself is killed, the kernel kills the replica.
"""

import ctypes
import os
import signal
import sys
from types import FrameType

PR_SET_PDEATHSIG = 1  # prctl(2)
NOT_EXECUTABLE = 126
NOT_FOUND = 127


def main(arguments: list[str]) -> int:
    """Run the program to its end and give its exit code; 128 + n when signal n ended it."""
    supervisor, command = int(arguments[0]), arguments[1:]
    # Until the program is the child, a SIGTERM waits: the fork in between would swallow it.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    signal.signal(signal.SIGUSR1, _kill_group)
    # The supervisor ends a group by SIGTERM; the replica decides what to do, this program waits.
    signal.signal(signal.SIGTERM, _wait_on)
    _die_with_parent(signal.SIGUSR1, supervisor)
    leader = os.getpid()
    child = os.fork()
    if child == 0:
        # The setting is cleared in the child of a fork (prctl(2)), so each asks for itself.
        _die_with_parent(signal.SIGKILL, leader)
        _become(command)
    if signal.SIGTERM in signal.sigpending():
        os.kill(child, signal.SIGTERM)  # it may have come before there was a child
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def _die_with_parent(number: int, parent: int) -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, number)
    if os.getppid() != parent:  # it died before we asked
        os.killpg(0, signal.SIGKILL)


def _become(command: list[str]) -> None:
    # Python ignores or catches these; programs expect them, and a SIGTERM that waited ends them.
    for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    try:
        os.execvp(command[0], command)  # noqa: S606 - an argument list, no shell
    except OSError as error:
        print(f"cannot run {command[0]}: {error.strerror}", file=sys.stderr, flush=True)  # noqa: T201 - the replica's own log
        os._exit(NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_EXECUTABLE)


def _kill_group(_number: int, _frame: FrameType | None) -> None:
    os.killpg(0, signal.SIGKILL)


def _wait_on(_number: int, _frame: FrameType | None) -> None:
    """Go on waiting."""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
