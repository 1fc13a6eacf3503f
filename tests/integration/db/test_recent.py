"""What was asked for of late, counted by request class."""

import pytest
from sqlalchemy import update

from gateway.core.vocabulary import JobState
from gateway.db import recent
from gateway.db.engine import Database
from gateway.db.jobs import intern_class
from gateway.db.recent import read_recent
from gateway.db.tables import jobs
from tests.builders import a_gang
from tests.db_rows import NOW_US, add_job


def counted(database: Database) -> dict[int, int]:
    with database.read() as connection:
        return read_recent(connection)


def class_id(database: Database, gpus: int) -> int:
    found: int = database.run_write(lambda writer: intern_class(writer, a_gang(gpu=gpus)))
    return found


def add(database: Database, gpus: int, *names: str) -> None:
    for name in names:
        add_job(database, name, a_gang(gpu=gpus))


def test_jobs_are_counted_by_class_whatever_became_of_them(database: Database) -> None:
    assert counted(database) == {}
    add(database, 1, "one", "two", "over")
    ended = (
        update(jobs).where(jobs.c.name == "over").values(state=JobState.SUCCEEDED, ended_us=NOW_US)
    )
    database.run_write(lambda writer: writer.connection.execute(ended))
    add(database, 4, "three")
    assert counted(database) == {class_id(database, 1): 3, class_id(database, 4): 1}


def test_older_jobs_than_the_last_few_do_not_count(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recent, "RECENT_JOBS", 3)
    add(database, 4, "old", "older")
    add(database, 1, "new", "newer")
    assert counted(database) == {class_id(database, 4): 1, class_id(database, 1): 2}
