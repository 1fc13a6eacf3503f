"""Transactions and group commit: what is acknowledged is stored, what fails is alone in it."""

import threading
import time
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from sqlalchemy import insert, select, text
from sqlalchemy.exc import IntegrityError, OperationalError

from gateway.db import connecting
from gateway.db.engine import Database, Writer, open_database
from gateway.db.tables import cohorts
from gateway.errors import DatabaseUnavailable, InvalidInput, StartupRefused
from tests.db_rows import insert_a_job


def names(database: Database) -> set[str]:
    with database.read() as connection:
        return set(connection.execute(select(cohorts.c.name)).scalars())


def waiting(database: Database) -> int:
    return sum(len(group._waiting) for group in database._groups.values())


def adding(name: str) -> Callable[[Writer], str]:
    def work(writer: Writer) -> str:
        writer.connection.execute(insert(cohorts).values(name=name))
        return name

    return work


def refusing(writer: Writer) -> str:
    adding("never")(writer)
    raise InvalidInput("refused")


def twice(writer: Writer) -> None:
    adding("same")(writer)
    adding("same")(writer)


def test_a_failed_transaction_leaves_nothing(database: Database) -> None:
    with pytest.raises(InvalidInput):
        database.run_write(refusing)
    assert names(database) == set()


def test_readers_see_one_moment_while_writers_go_on(database: Database) -> None:
    with database.read() as connection:
        assert connection.execute(select(cohorts)).all() == []
        database.run_write(adding("late"))
        assert connection.execute(select(cohorts)).all() == []
    assert names(database) == {"late"}


def test_a_savepoint_is_rolled_back_alone(database: Database) -> None:
    with database.write() as writer:
        adding("kept")(writer)
        with pytest.raises(InvalidInput), writer.savepoint():
            refusing(writer)
    assert names(database) == {"kept"}


def test_writers_at_once_all_commit_without_a_locked_error(database: Database) -> None:
    def many(start: int) -> None:
        for number in range(10):
            database.run_write(adding(f"c-{start}-{number}"))

    threads = [threading.Thread(target=many, args=(start,)) for start in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert len(names(database)) == 80


def test_fifty_threads_share_commits_and_one_failure_is_alone(database: Database) -> None:
    outcomes: dict[int, Any] = {}
    barrier = threading.Barrier(50)

    def submit(number: int) -> None:
        barrier.wait()
        try:
            work = refusing if number == 17 else adding(f"c{number}")
            outcomes[number] = database.run_grouped(work)
        except InvalidInput as error:
            outcomes[number] = error

    threads = [threading.Thread(target=submit, args=(number,)) for number in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert isinstance(outcomes.pop(17), InvalidInput)
    assert outcomes == {number: f"c{number}" for number in range(50) if number != 17}
    assert names(database) == set(outcomes.values())


def test_writes_that_come_during_a_commit_share_the_next_one(database: Database) -> None:
    commits: list[int] = []
    entered, leave = threading.Event(), threading.Event()

    def slow(writer: Writer) -> None:
        commits.append(writer.xact_id)
        entered.set()
        leave.wait(timeout=30)

    def quick(writer: Writer) -> None:
        commits.append(writer.xact_id)

    first = threading.Thread(target=database.run_grouped, args=(slow,))
    first.start()
    entered.wait(timeout=30)
    others = [threading.Thread(target=database.run_grouped, args=(quick,)) for _ in range(10)]
    for thread in others:
        thread.start()
    while waiting(database) < 10:
        time.sleep(0.001)
    leave.set()
    for thread in (first, *others):
        thread.join(timeout=30)
    assert len(commits) == 11
    assert len(set(commits)) == 2


def test_a_broken_transaction_acknowledges_nobody(database: Database) -> None:
    def broken(_writer: Writer) -> None:
        raise OperationalError("INSERT", {}, Exception("database or disk is full"))

    entered, leave = threading.Event(), threading.Event()
    outcomes: list[Any] = []

    def blocking(_writer: Writer) -> None:
        entered.set()
        leave.wait(timeout=30)

    def attempt(work: Callable[[Writer], Any]) -> None:
        try:
            outcomes.append(database.run_grouped(work))
        except DatabaseUnavailable as error:
            outcomes.append(error)

    threads = [threading.Thread(target=attempt, args=(blocking,))]
    threads[0].start()
    entered.wait(timeout=30)
    threads += [threading.Thread(target=attempt, args=(work,)) for work in (adding("lost"), broken)]
    for thread in threads[1:]:
        thread.start()
    while waiting(database) < 2:
        time.sleep(0.001)
    leave.set()
    for thread in threads:
        thread.join(timeout=30)
    assert [type(outcome).__name__ for outcome in outcomes].count("DatabaseUnavailable") == 2
    assert names(database) == set()


def test_a_deadlock_is_tried_again(database: Database) -> None:
    if database.is_sqlite:
        assert database.run_write(adding("one")) == "one"  # one writer: no deadlock there
        return
    for name in ("a", "b"):
        database.run_write(adding(name))
    barrier = threading.Barrier(2)

    def crossing(first: str, second: str) -> Callable[[Writer], None]:
        tries: list[str] = []

        def work(writer: Writer) -> None:
            tries.append(first)
            for name in (first, second):
                statement = text("UPDATE cohorts SET weight = weight + 1 WHERE name = :name")
                writer.connection.execute(statement, {"name": name})
                if name == first and len(tries) == 1:
                    barrier.wait(timeout=10)

        return work

    threads = [
        threading.Thread(target=database.run_write, args=(crossing(*pair),))
        for pair in (("a", "b"), ("b", "a"))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    with database.read() as connection:
        assert connection.execute(select(cohorts.c.weight)).scalars().all() == [3, 3]


def test_a_value_that_cannot_be_stored_is_the_callers_fault(database: Database) -> None:
    values: list[Any] = [{"name": "x", "weight": 2**70}, {"name": "\ud800", "weight": 1}]
    for row in values:
        with pytest.raises(InvalidInput), database.write() as writer:
            writer.connection.execute(insert(cohorts).values(**row))


def test_a_taken_name_stays_the_callers_to_judge(database: Database) -> None:
    database.run_grouped(lambda writer: insert_a_job(writer, "one"))
    with pytest.raises(IntegrityError):
        database.run_grouped(twice)


def test_a_connection_that_broke_while_it_lay_idle_is_replaced(
    postgresql_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connecting, "IDLE_SECONDS", 0.0)
    database = open_database(postgresql_url, pool_size=1)
    with database.read() as connection:
        first = connection.execute(text("SELECT pg_backend_pid()")).scalar_one()
    with psycopg.connect(postgresql_url, autocommit=True) as other:
        other.execute("SELECT pg_terminate_backend(%s)", [first])
    with database.read() as connection:
        assert connection.execute(text("SELECT pg_backend_pid()")).scalar_one() != first
    database.close()


def test_a_missing_server_is_reported_as_unavailable() -> None:
    database = open_database("postgresql://gateway@127.0.0.1:1/none")
    with pytest.raises(DatabaseUnavailable), database.read():
        pass
    database.close()


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///:memory:", "mysql://host/name"])
def test_databases_that_cannot_work_are_refused(url: str) -> None:
    with pytest.raises(StartupRefused) as refused:
        open_database(url)
    assert refused.value.hint


def test_sqlite_commits_are_on_the_disk_before_they_are_acknowledged(sqlite_url: str) -> None:
    database = open_database(sqlite_url)
    with database.read() as connection:
        pragmas = {
            name: connection.execute(text(f"PRAGMA {name}")).scalar_one()
            for name in ("journal_mode", "synchronous", "foreign_keys")
        }
    database.close()
    assert pragmas == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1}


def test_behind_a_pooler_nothing_is_prepared_and_nothing_is_set_for_the_session(
    postgresql_url: str,
) -> None:
    database = open_database(postgresql_url, has_pooler=True)
    with database.write() as writer:
        driver = writer.connection.connection.driver_connection
        assert driver is not None
        assert driver.prepare_threshold is None
        assert driver.info.get_parameters().get("options") is None
        assert writer.connection.execute(text("SHOW lock_timeout")).scalar_one() == "5s"
    database.close()
