"""Leadership: one epoch at a time, and a former leader writes nothing."""

import threading

import pytest
from sqlalchemy import insert, select, text

from gateway.db.engine import Database, Writer, open_database
from gateway.db.leases import acquire_or_renew, release, require_epoch
from gateway.db.state import bump_generation, next_serial, read_generation, read_serial
from gateway.db.tables import cohorts
from gateway.errors import StaleLeader


def expire(database: Database) -> None:
    with database.write() as writer:
        writer.connection.execute(text("UPDATE leader_lease SET expires_us = 1"))


def deciding_late(writer: Writer) -> None:
    writer.connection.execute(insert(cohorts).values(name="stale"))
    require_epoch(writer, 1)


def test_a_leader_keeps_its_epoch_by_renewing(database: Database) -> None:
    assert [acquire_or_renew(database, "a", 15) for _ in range(3)] == [1, 1, 1]


def test_nobody_takes_over_a_lease_that_still_holds(postgresql_url: str) -> None:
    database = open_database(postgresql_url)
    assert acquire_or_renew(database, "a", 15) == 1
    assert acquire_or_renew(database, "b", 15) is None
    expire(database)
    assert acquire_or_renew(database, "b", 15) == 2
    assert acquire_or_renew(database, "a", 15) is None
    database.close()


def test_on_sqlite_a_new_server_takes_over_at_once(sqlite_url: str) -> None:
    database = open_database(sqlite_url)
    assert acquire_or_renew(database, "before-the-crash", 15) == 1
    assert acquire_or_renew(database, "after-it", 15) == 2
    database.close()


def test_a_released_lease_can_be_taken_at_once(database: Database) -> None:
    acquire_or_renew(database, "a", 15)
    release(database, "b")  # not b's to give
    release(database, "a")
    assert acquire_or_renew(database, "b", 15) == 2


def test_of_candidates_at_once_one_leads(postgresql_url: str) -> None:
    database = open_database(postgresql_url)
    results: list[int | None] = []

    def stand(name: str) -> None:
        results.append(acquire_or_renew(database, name, 15))

    threads = [threading.Thread(target=stand, args=(name,)) for name in "abcdef"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    database.close()
    assert sorted(results, key=str) == [1, None, None, None, None, None]


def test_a_stale_epoch_aborts_the_whole_transaction(database: Database) -> None:
    acquire_or_renew(database, "a", 15)
    expire(database)
    acquire_or_renew(database, "b", 15)
    with pytest.raises(StaleLeader):
        database.run_write(deciding_late)
    with database.read() as connection:
        assert connection.execute(select(cohorts)).all() == []
    with database.write() as writer:
        require_epoch(writer, 2)


def test_a_take_over_waits_for_a_decision_that_is_being_written(postgresql_url: str) -> None:
    database, other = open_database(postgresql_url), open_database(postgresql_url)
    acquire_or_renew(database, "a", 15)
    expire(database)
    taken: list[int | None] = []
    with database.write() as writer:
        require_epoch(writer, 1)
        thread = threading.Thread(target=lambda: taken.append(acquire_or_renew(other, "b", 15)))
        thread.start()
        thread.join(timeout=0.3)
        assert taken == []
    thread.join(timeout=30)
    assert taken == [2]
    other.close()
    database.close()


def test_counters_only_grow(database: Database) -> None:
    assert [database.run_write(next_serial) for _ in range(3)] == [1, 2, 3]
    assert [database.run_write(bump_generation) for _ in range(2)] == [1, 2]
    with database.read() as connection:
        assert (read_serial(connection), read_generation(connection)) == (3, 2)
