"""Waiting jobs whose queue timeout has passed, of several timeouts, and nobody else."""

from gateway.core.vocabulary import JobState
from gateway.db.engine import Database, Writer
from gateway.db.jobs import intern_class
from gateway.db.overdue import SECOND_US, overdue_waiting
from tests.builders import a_gang
from tests.db_rows import NOW_US, insert_job, job_values


def overdue(database: Database, seconds: int, limit: int = 10) -> list[str]:
    """Give who is overdue so long after the first submit."""
    with database.read() as connection:
        rows = overdue_waiting(connection, NOW_US + seconds * SECOND_US, limit)
    return sorted(row["name"] for row in rows)


def add(database: Database, name: str, timeout: int | None, after: int = 0, **more: object) -> None:
    """Insert a job with a queue timeout, submitted so many seconds after the first."""
    values = {
        "queue_timeout_seconds": timeout,
        "submitted_us": NOW_US + after * SECOND_US,
        **more,
    }

    def insert(writer: Writer) -> None:
        class_id = intern_class(writer, a_gang())
        insert_job(writer, job_values(name, class_id=class_id, **values))

    database.run_write(insert)


def test_each_waits_as_long_as_its_own_timeout(database: Database) -> None:
    add(database, "short", 10)
    add(database, "later", 10, after=5)
    add(database, "long", 100)
    add(database, "never", None)

    assert overdue(database, 9) == []
    assert overdue(database, 10) == ["short"]
    assert overdue(database, 15) == ["later", "short"]
    assert overdue(database, 1000) == ["later", "long", "short"]


def test_only_those_who_wait_are_overdue(database: Database) -> None:
    add(database, "held", 10, state=JobState.HELD)
    add(database, "runs", 10, state=JobState.RUNNING)
    add(database, "ended", 10, state=JobState.CANCELLED, ended_us=NOW_US)

    assert overdue(database, 1000) == ["held"]


def test_no_more_are_given_than_asked_for(database: Database) -> None:
    for number in range(4):
        add(database, f"job-{number}", 10 + number % 2)

    assert len(overdue(database, 1000, limit=3)) == 3
