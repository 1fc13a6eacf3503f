"""Opening a database file that others open, or hold, at the same moment."""

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest
from sqlalchemy import text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import OperationalError

from gateway.db import connecting
from gateway.db.connecting import sqlite_writing

OPENERS = 12


def mode_of(path: Path, together: Barrier) -> str:
    together.wait()
    engine = sqlite_writing(make_url(f"sqlite:///{path}"))
    try:
        with engine.connect() as connection:
            return str(connection.execute(text("PRAGMA journal_mode")).scalar_one())
    finally:
        engine.dispose()


def test_all_who_open_a_new_file_at_once_get_in(tmp_path: Path) -> None:
    together = Barrier(OPENERS)
    with ThreadPoolExecutor(OPENERS) as pool:
        opened = [pool.submit(mode_of, tmp_path / "new.db", together) for _ in range(OPENERS)]
        assert [each.result() for each in opened] == ["wal"] * OPENERS


def test_a_file_that_stays_locked_is_given_up_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connecting, "BUSY_SECONDS", 0)
    monkeypatch.setattr(connecting, "_PRAGMAS", ("busy_timeout=0", "journal_mode=WAL"))
    path = tmp_path / "held.db"
    holder = sqlite3.connect(path, isolation_level=None)
    try:
        holder.execute("CREATE TABLE anything (id INTEGER)")
        holder.execute("BEGIN EXCLUSIVE")
        with pytest.raises(OperationalError, match="locked"):
            mode_of(path, Barrier(1))
    finally:
        holder.close()
