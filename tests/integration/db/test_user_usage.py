"""Decayed usage in the database: noted once a transaction, read whole when any of it changed."""

from gateway.core.policies.decay import STORED_BITS
from gateway.db.engine import Database
from gateway.db.mirror_reading import Asked, read_changes
from gateway.db.usage import UsageNote, note_usage, read_usage

HOUR_US = 3_600_000_000
HALF_LIFE_US = 10 * HOUR_US
ALL = 1 << STORED_BITS
"""The whole fleet, as usage is stored; read it is 2^20."""


def note(database: Database, at_us: int, *notes: tuple[str, str, int]) -> None:
    given = [UsageNote(*values) for values in notes]
    database.run_write(lambda writer: note_usage(writer, given, at_us, HALF_LIFE_US))


def told(database: Database, horizon: int = 0) -> dict[str, dict[str, int]] | None:
    with database.read() as connection:
        return read_usage(connection, horizon, HALF_LIFE_US)


def test_nobody_has_used_anything_in_the_beginning(database: Database) -> None:
    assert told(database) is None
    note(database, 0)
    assert told(database) is None


def test_notes_of_a_transaction_add_up_and_fade_until_the_next(database: Database) -> None:
    note(database, HOUR_US, ("lab", "ann", ALL // 4), ("lab", "ann", ALL // 4))
    assert told(database) == {"lab": {"ann": 2**19}}
    note(database, HOUR_US + HALF_LIFE_US, ("lab", "ann", ALL // 2))
    assert told(database) == {"lab": {"ann": 2**18 + 2**19}}


def test_usages_of_a_queue_are_brought_to_its_latest_note(database: Database) -> None:
    note(database, 0, ("lab", "ann", ALL), ("field", "ann", ALL))
    note(database, HALF_LIFE_US, ("lab", "bob", ALL // 8))
    assert told(database) == {"field": {"ann": 2**20}, "lab": {"ann": 2**19, "bob": 2**17}}


def test_a_note_that_comes_late_counts_as_of_its_own_instant(database: Database) -> None:
    note(database, HALF_LIFE_US, ("lab", "ann", ALL // 2))
    note(database, 0, ("lab", "ann", ALL // 2))
    assert told(database) == {"lab": {"ann": 2**19 + 2**18}}


def test_usage_that_is_taken_back_never_falls_below_nothing(database: Database) -> None:
    note(database, 0, ("lab", "ann", 5))
    note(database, 0, ("lab", "ann", -9))
    note(database, 0, ("lab", "ann", ALL))
    assert told(database) == {"lab": {"ann": 2**20}}


def test_a_reader_gets_all_of_it_once_any_of_it_changed(database: Database) -> None:
    note(database, 0, ("lab", "ann", ALL))
    rows, horizon = read_changes(database, 0, Asked(HALF_LIFE_US))
    assert rows.usage == {"lab": {"ann": 2**20}}
    # Whatever is written next is above what this reader knows.
    _, horizon = read_changes(database, horizon + 1, Asked(HALF_LIFE_US))
    assert read_changes(database, horizon + 1, Asked(HALF_LIFE_US))[0].usage is None
    note(database, 0, ("field", "bob", ALL))
    rows, _ = read_changes(database, horizon, Asked(HALF_LIFE_US))
    assert rows.usage == {"field": {"bob": 2**20}, "lab": {"ann": 2**20}}
