"""What was acknowledged survives kill -9; two servers never share one SQLite file."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import select, text

from gateway.db.backups import backup
from gateway.db.engine import open_database
from gateway.db.locking import lock_sqlite
from gateway.db.tables import cohorts
from gateway.errors import StartupRefused

WRITER = """
import sys
from sqlalchemy import insert
from gateway.db.engine import open_database
from gateway.db.tables import cohorts
database = open_database(sys.argv[1])
for number in range(1_000_000):
    name = f"r{sys.argv[2]}-{number}"
    database.run_grouped(lambda w: w.connection.execute(insert(cohorts).values(name=name)))
    print(name, flush=True)
"""
HOLDER = """
import sys
from gateway.db.locking import lock_sqlite
lock = lock_sqlite(sys.argv[1])
print("held", flush=True)
sys.stdin.read()
"""


def start(program: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def kill(process: subprocess.Popen[str]) -> str:
    """End it at once; gives what it still said."""
    process.send_signal(signal.SIGKILL)
    return process.communicate(timeout=20)[0]


def test_kill_9_of_a_writer_loses_nothing_that_was_acknowledged(sqlite_url: str) -> None:
    acknowledged: set[str] = set()
    for round_number in range(5):
        process = start(WRITER, sqlite_url, str(round_number))
        assert process.stdout is not None
        said = [process.stdout.readline() for _ in range(20)]
        said += kill(process).splitlines(keepends=True)
        acknowledged.update(line.strip() for line in said if line.endswith("\n"))
    database = open_database(sqlite_url)
    with database.read() as connection:
        stored = set(connection.execute(select(cohorts.c.name)).scalars())
        assert connection.execute(text("PRAGMA integrity_check")).scalar_one() == "ok"
    database.close()
    assert len(acknowledged) >= 100
    assert acknowledged <= stored


def test_a_second_server_on_one_file_refuses_and_names_the_first(sqlite_url: str) -> None:
    process = start(HOLDER, sqlite_url)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    with pytest.raises(StartupRefused) as refused:
        lock_sqlite(sqlite_url)
    assert str(process.pid) in refused.value.detail
    assert "PostgreSQL" in refused.value.hint
    kill(process)
    lock = lock_sqlite(sqlite_url)  # the lock died with its holder
    assert lock is not None
    lock.seek(0)
    assert lock.read() == str(os.getpid())
    lock.close()


def test_postgresql_needs_no_lock_file(postgresql_url: str) -> None:
    assert lock_sqlite(postgresql_url) is None


def test_a_backup_of_a_database_in_use_is_whole(sqlite_url: str, tmp_path: Path) -> None:
    process = start(WRITER, sqlite_url, "0")
    assert process.stdout is not None
    before = [process.stdout.readline().strip() for _ in range(10)]
    target = tmp_path / "copy.db"
    backup(sqlite_url, target)
    kill(process)
    database = open_database(f"sqlite:///{target}")
    with database.read() as connection:
        stored = set(connection.execute(select(cohorts.c.name)).scalars())
        assert connection.execute(text("PRAGMA integrity_check")).scalar_one() == "ok"
    database.close()
    assert set(before) <= stored
