"""Moves attempt folders in, out and away, each by one atomic rename."""

import errno
import shutil
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from gateway.backends.base import ObjectRef
from gateway.backends.durable import sync_folder, write_json
from gateway.backends.local.folder import AttemptFolder, StateFolder
from gateway.backends.local.liveness import still_runs
from gateway.backends.local.records import LaunchRecord

MOST_KEPT: Final = 500
"""Deleted objects whose logs are kept; the oldest go first."""
STALE_SECONDS: Final = 600.0


def place(state: StateFolder, record: LaunchRecord) -> bool:
    """Create an attempt's folder whole or not at all; False when something lies there."""
    target = state.attempt(record.namespace, record.name).path
    target.parent.mkdir(parents=True, exist_ok=True)
    # Built aside and renamed whole: under its name an attempt is complete or not there. The
    # incoming folder lies on the same file system, as rename(2) demands.
    fresh = Path(tempfile.mkdtemp(dir=state.incoming))
    for part in ("plans", "logs"):
        (fresh / part).mkdir()
    write_json(fresh / "launch.json", record.to_json())
    try:
        fresh.rename(target)
    # rename(2) replaces an empty folder, but not one with files in it; ENOTDIR is a stray file.
    except OSError as error:
        shutil.rmtree(fresh)
        if error.errno in {errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR}:
            return False
        raise
    # Without it a power cut may forget the name although the files are on the disk.
    sync_folder(target.parent)
    return True


def keep(state: StateFolder, folder: AttemptFolder, ref: ObjectRef, most: int = MOST_KEPT) -> None:
    """Move a deleted object's folder to the kept ones; gone meanwhile is fine."""
    target = state.kept(ref.namespace, ref.name, ref.uid).path
    target.parent.mkdir(parents=True, exist_ok=True)
    with suppress(FileNotFoundError):
        # Logs follow through the open file, and the supervisor through its working folder.
        folder.path.rename(target)
        sync_folder(target.parent)
    for path in state.all_kept()[:-most]:
        _drop(state, path)


def clear_incoming(state: StateFolder) -> None:
    """Remove folders that a killed gateway never finished."""
    for path in state.incoming.iterdir():
        # Younger ones may belong to a gateway that is creating right now.
        if time.time() - path.stat().st_mtime > STALE_SECONDS:
            shutil.rmtree(path, ignore_errors=True)


def _drop(state: StateFolder, path: Path) -> None:
    # Its files are the only word on what still runs; the next deletion looks again.
    if still_runs(AttemptFolder(path).supervisor()):
        return
    shutil.rmtree(path, ignore_errors=True)
    state.supervisor_file(path.name).unlink(missing_ok=True)
