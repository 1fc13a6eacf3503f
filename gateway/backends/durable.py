"""JSON files that a kill at any point leaves either old or new, never half.

Only writing and reading; what stands in a file is its owner's concern.
"""

import json
import os
import threading
from pathlib import Path
from typing import Any


def write_json(path: Path, document: Any) -> None:
    """Replace a file atomically and durably; raises OSError as the file system does."""
    # Beside the target, since rename(2) is atomic within one file system only. Process and thread
    # in the name: two writers of one path must not write into one file.
    fresh = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}")
    try:
        with fresh.open("w", encoding="utf-8") as stream:
            json.dump(document, stream)
            stream.flush()
            # The data before the name: ext4 and xfs may else show an empty file after a power cut.
            os.fsync(stream.fileno())
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)  # there is one only when the write failed
    sync_folder(path.parent)


def read_json(path: Path) -> dict[str, Any] | None:
    """Give the object in a file; None when there is no file or no JSON object in it."""
    try:
        document = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return document if isinstance(document, dict) else None


def sync_folder(folder: Path) -> None:
    """Make the folder's entries durable."""
    # A rename lives in the folder, so that is what has to reach the disk.
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
