"""Recognises a running program by pid and start time, since a pid alone is used again.

Linux only: reads /proc.
"""

import os
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """One program that was started, on this boot or an earlier one."""

    pid: int
    started_ticks: int
    """Clock ticks since the boot, field 22 of /proc/PID/stat."""
    boot_id: str

    def is_alive(self) -> bool:
        """Whether exactly this program still runs; one that only waits to be reaped does not."""
        facts = _read_stat(self.pid)
        if facts is None or self.boot_id != boot_id():
            return False
        # Z and X are proc(5)'s zombie and dead: both still have a pid, neither runs.
        state, started_ticks = facts
        return started_ticks == self.started_ticks and state not in "ZX"

    def signal_group(self, number: int) -> None:
        """Send a signal to its whole group, if it leads one and is alive."""
        if self.is_alive():
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, number)


def still_runs(program: Running | None) -> bool:
    """Whether a program runs that may never have been started."""
    return program is not None and program.is_alive()


def identify(pid: int) -> Running | None:
    """Give what recognises a program later; None when it is gone already."""
    facts = _read_stat(pid)
    return Running(pid=pid, started_ticks=facts[1], boot_id=boot_id()) if facts else None


@cache
def boot_id() -> str:
    """Give the id that Linux draws at each boot."""
    return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()


def _read_stat(pid: int) -> tuple[str, int] | None:
    try:
        # Replaced, as a program may set its own name to any bytes (PR_SET_NAME).
        text = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
    except OSError:
        return None
    # The name in brackets may hold anything, so count the fields behind its end.
    fields = text.rpartition(")")[2].split()
    return fields[0], int(fields[19])
