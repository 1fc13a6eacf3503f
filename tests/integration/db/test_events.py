"""The history: appended with the change it tells of, never edited, told without gaps."""

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DatabaseError

from gateway.db.engine import Database, Writer, open_database
from gateway.db.events import EventFilter, NewEvent, append_event, list_events
from tests.db_rows import NOW_US, add_job


def tell(writer: Writer, kind: str, job_id: int | None = None) -> None:
    append_event(writer, NewEvent(at_us=NOW_US, kind=kind, actor="test", job_id=job_id))


def telling_in_vain(writer: Writer) -> None:
    tell(writer, "never")
    raise RuntimeError


def told(
    database: Database, *, after_id: int = 0, job_id: int | None = None, limit: int = 100
) -> list[tuple[int, str]]:
    wanted = EventFilter(after_id=after_id, job_id=job_id, limit=limit)
    with database.read() as connection:
        return [(row["id"], row["kind"]) for row in list_events(connection, wanted)]


def test_events_are_gone_with_the_change_they_belong_to(database: Database) -> None:
    with pytest.raises(RuntimeError):
        database.run_write(telling_in_vain)
    database.run_write(lambda writer: tell(writer, "kept"))
    assert [kind for _, kind in told(database)] == ["kept"]


@pytest.mark.parametrize("statement", ["UPDATE events SET kind = 'x'", "DELETE FROM events"])
def test_history_cannot_be_edited(database: Database, statement: str) -> None:
    database.run_write(lambda writer: tell(writer, "kept"))
    with pytest.raises(DatabaseError, match="append-only"), database.write() as writer:
        writer.connection.execute(text(statement))
    assert [kind for _, kind in told(database)] == ["kept"]


def test_history_cannot_be_replaced_either(database: Database) -> None:
    if not database.is_sqlite:
        return  # PostgreSQL has no REPLACE
    database.run_write(lambda writer: tell(writer, "kept"))
    forged = (
        "REPLACE INTO events (id, at_us, actor, detail, data, xact_id, kind) "
        "SELECT id, at_us, actor, detail, data, xact_id, 'forged' FROM events"
    )
    with pytest.raises(DatabaseError, match="append-only"), database.write() as writer:
        writer.connection.execute(text(forged))
    assert [kind for _, kind in told(database)] == ["kept"]


def test_one_jobs_events_come_in_order_and_page_by_page(database: Database) -> None:
    job_ids = [add_job(database, name) for name in ("one", "two")]
    for number in range(4):
        job_id = job_ids[number % 2]
        with database.write() as writer:
            tell(writer, f"step-{number}", job_id)
    first = told(database, job_id=job_ids[0], limit=1)
    rest = told(database, job_id=job_ids[0], after_id=first[0][0])
    assert [kind for _, kind in (*first, *rest)] == ["step-0", "step-2"]


def test_only_named_namespaces_are_told(database: Database) -> None:
    job_id = add_job(database, "one")
    database.run_write(lambda writer: tell(writer, "of-the-job", job_id))
    database.run_write(lambda writer: tell(writer, "of-nobody"))
    with database.read() as connection:
        for namespaces, expected in ((("team-a",), ["of-the-job"]), (("team-b",), [])):
            rows = list_events(connection, EventFilter(namespaces=namespaces))
            assert [row["kind"] for row in rows] == expected


def test_an_event_of_a_slow_transaction_is_not_lost_to_who_resumes(postgresql_url: str) -> None:
    database, other = open_database(postgresql_url), open_database(postgresql_url)
    database.run_write(lambda writer: tell(writer, "first"))
    with other.write() as slow:
        tell(slow, "slow")
        database.run_write(lambda writer: tell(writer, "quick"))
        seen = told(database)
    position = seen[-1][0]
    seen += told(database, after_id=position)
    assert [kind for _, kind in seen] == ["first", "slow", "quick"]
    other.close()
    database.close()


def test_an_older_transaction_that_tells_later_is_not_lost_either(postgresql_url: str) -> None:
    database, other = open_database(postgresql_url), open_database(postgresql_url)
    seen: list[tuple[int, str]] = []

    def follow() -> None:
        seen.extend(told(database, after_id=seen[-1][0] if seen else 0))

    with other.write() as slow:
        assert slow.xact_id > 0  # numbered first, tells last
        database.run_write(lambda writer: tell(writer, "quick"))
        follow()
        tell(slow, "slow")
        follow()
    follow()
    follow()
    assert sorted(kind for _, kind in seen) == ["quick", "slow"]
    other.close()
    database.close()
