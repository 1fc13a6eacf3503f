"""The program that runs one gang and outlives the gateway.

    python -m gateway.backends.local.supervisor ATTEMPT_FOLDER

It works inside the attempt's folder, so a folder that is moved away takes its supervisor along. It
ends with its gang: on an outcome, on the gateway's stop mark, when its folder vanishes, or when no
gateway has shown itself for `orphan_seconds`.
"""

import fcntl
import os
import socket
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Final

from gateway.backends.durable import write_json
from gateway.backends.local.folder import AttemptFolder
from gateway.backends.local.gang import Gang
from gateway.backends.local.liveness import identify
from gateway.backends.local.records import LaunchRecord
from gateway.backends.local.rendezvous import LOOPBACK

STEP_SECONDS: Final = 0.05
FIRST_PORT: Final = 20_000
PORTS: Final = 10_000
"""Below the ephemeral range, so that no outgoing connection can take a gang's port."""


class Heartbeat:
    """Tells how long no gateway has shown itself, by the monotonic clock."""

    def __init__(self, path: Path, now: float) -> None:
        """Count from now."""
        self._path = path
        self._seen = self._stamp()
        self._seen_at = now

    def silent_seconds(self, now: float) -> float:
        """Give the seconds since the file last changed, or since the start."""
        # A change counts, not the time in the file: that one moves with the wall clock.
        stamp = self._stamp()
        if stamp != self._seen:
            self._seen, self._seen_at = stamp, now
        return now - self._seen_at

    def _stamp(self) -> int:
        try:
            return self._path.stat().st_mtime_ns
        except OSError:
            return 0


def main(arguments: list[str]) -> int:
    """Supervise one attempt to its end; at once done when another supervisor has it or had it."""
    # Its folder may be renamed to the kept ones at any time; relative paths go with it.
    os.chdir(arguments[0])
    folder = AttemptFolder(Path())
    with folder.lock.open("w") as lock:
        try:
            # The kernel drops it with the process: a killed supervisor leaves no stale lock.
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return 0
        record = folder.launch()
        if record is not None and _is_unsupervised(folder):
            _introduce(folder, record)
            _supervise(folder, record)
    return 0


def _is_unsupervised(folder: AttemptFolder) -> bool:
    # Without the mark this is another object that took the name meanwhile.
    return folder.started.exists() and folder.supervisor() is None


def _introduce(folder: AttemptFolder, record: LaunchRecord) -> None:
    """Say who runs the gang, before anything of it runs."""
    own = identify(os.getpid())
    if own is None:
        raise RuntimeError("this program is not listed in /proc")
    state_folder = Path(record.heartbeat_file).parent
    # Outside first, so that a gang whose folder is deleted right now is still known to run.
    write_json(state_folder / "supervisors" / f"{record.uid}.json", asdict(own))
    write_json(folder.path / "supervisor.json", asdict(own))


def _supervise(folder: AttemptFolder, record: LaunchRecord) -> None:
    gang = Gang(folder, record, free_port(record.uid))
    heartbeat = Heartbeat(Path(record.heartbeat_file), time.monotonic())
    written = None
    while True:
        now = time.monotonic()
        if _is_stopped(folder):
            gang.stop(now)
        elif heartbeat.silent_seconds(now) > record.orphan_seconds:
            gang.orphan(now)
        gang.step(now)
        gang.status.is_final = gang.is_over()
        current = gang.status.to_json()
        # An fsync each; twenty a second for every gang would keep the disk busy with nothing.
        if current != written:
            _write(folder, gang)
            written = current
        if gang.status.is_final:
            return
        time.sleep(STEP_SECONDS)


def _is_stopped(folder: AttemptFolder) -> bool:
    return folder.stopped.exists() or not (folder.path / "launch.json").exists()


def _write(folder: AttemptFolder, gang: Gang) -> None:
    try:
        folder.write_status(gang.status)
    except OSError:
        # The folder was deleted behind our back; the next look sees it and ends the gang.
        return


def free_port(uid: str) -> int:
    """Give a free loopback port; gangs start their search at different places."""
    # Two gangs that start at once probe different ports first. Bound and let go, a port is free for
    # the Master to bind a moment later; nothing holds it in between.
    start = int(uid.replace("-", "")[:8], 16) % PORTS
    for offset in range(PORTS):
        port = FIRST_PORT + (start + offset) % PORTS
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            try:
                probe.bind((LOOPBACK, port))
            except OSError:
                continue
            return port
    raise OSError(f"no free port from {FIRST_PORT} to {FIRST_PORT + PORTS - 1}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
