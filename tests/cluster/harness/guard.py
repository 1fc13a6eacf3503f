"""Ends the programs of a control plane whose test run died without a word (kill -9).

Run as its own program: it reads `PID START_TICKS` lines and, at the end of its input, folders to
remove. Its input ends when the test run does; then whatever still lives is killed. The start time
protects a stranger that got the same process id.
"""

import os
import shutil
import signal
import sys
from pathlib import Path


def start_ticks(pid: int) -> str:
    """Give the start time of a process in clock ticks; empty when it does not live."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    # The second field may hold blanks and parentheses, so count from its end.
    return text.rpartition(")")[2].split()[19]


def kill_if_same(pid: int, ticks: str) -> None:
    """Kill the process unless its id belongs to another one by now."""
    if ticks and start_ticks(pid) == ticks:
        os.kill(pid, signal.SIGKILL)


def main() -> None:
    """Read until the input ends, then clean up."""
    # Ctrl-C in a terminal reaches the whole group; the guard must outlive it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    folder, children = sys.argv[1], []
    for line in sys.stdin:
        pid, _, ticks = line.strip().partition(" ")
        children.append((int(pid), ticks))
    for pid, ticks in children:
        kill_if_same(pid, ticks)
    if not os.environ.get("TRAINING_GATEWAY_TEST_KEEP"):
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
