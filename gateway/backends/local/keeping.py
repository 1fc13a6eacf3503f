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
    fresh = Path(tempfile.mkdtemp(dir=state.incoming))
    for part in ("plans", "logs"):
        (fresh / part).mkdir()
    write_json(fresh / "launch.json", record.to_json())
    try:
        fresh.rename(target)
    except OSError as error:
        shutil.rmtree(fresh)
        if error.errno in {errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR}:
            return False
        raise
    sync_folder(target.parent)
    return True


def keep(state: StateFolder, folder: AttemptFolder, ref: ObjectRef) -> None:
    """Move a deleted object's folder to the kept ones; gone meanwhile is fine."""
    target = state.kept(ref.namespace, ref.name, ref.uid).path
    target.parent.mkdir(parents=True, exist_ok=True)
    with suppress(FileNotFoundError):
        folder.path.rename(target)
        sync_folder(target.parent)
    for path in state.all_kept()[:-MOST_KEPT]:
        _drop(state, path)


def clear_incoming(state: StateFolder) -> None:
    """Remove folders that a killed gateway never finished."""
    for path in state.incoming.iterdir():
        if time.time() - path.stat().st_mtime > STALE_SECONDS:
            shutil.rmtree(path, ignore_errors=True)


def _drop(state: StateFolder, path: Path) -> None:
    if still_runs(AttemptFolder(path).supervisor()):
        return
    shutil.rmtree(path, ignore_errors=True)
    state.supervisor_file(path.name).unlink(missing_ok=True)
