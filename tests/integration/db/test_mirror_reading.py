"""The mirror misses nothing, also not a transaction that stays open while a later one commits."""

from typing import Any

import pytest

from gateway.core.mirror import Mirror, MirrorRows
from gateway.core.vocabulary import JobState
from gateway.db import jobs as job_rows
from gateway.db.engine import Database, Writer, open_database
from gateway.db.fleet import set_cordon, sync_inventory
from gateway.db.inventory_reading import get_node
from gateway.db.mirror_reading import Asked, read_changes, read_waiting
from gateway.db.state import bump_generation, set_inventory_complete
from tests.builders import a_gang
from tests.db_rows import (
    NOW_US,
    a_grant,
    a_pod,
    add_job,
    add_nodes,
    free,
    insert_a_job,
    reserve,
    seen_devices,
    seen_node,
)


def failing(writer: Writer) -> None:
    insert_a_job(writer, "gone")
    raise RuntimeError


def same_as_cold(database: Database, warm: Mirror) -> bool:
    """Whether a mirror that followed changes holds what one that starts now would hold."""
    cold = Mirror()
    cold.apply(read_changes(database, 0, Asked(with_jobs=False))[0])
    for piece in read_waiting(database):
        cold.apply(MirrorRows(waiting=piece))
    # Arrays have no plain equality; they are short enough to be written out.
    return repr(cold.snapshot(1)) == repr(warm.snapshot(1))


def waiting(mirror: Mirror) -> set[int]:
    return set(mirror.snapshot(1).waiting.job_id.tolist())


def test_a_transaction_that_stays_open_while_a_later_one_commits_is_not_lost(
    postgresql_url: str,
) -> None:
    database, other = open_database(postgresql_url), open_database(postgresql_url)
    database.run_write(lambda writer: job_rows.intern_class(writer, a_gang()))
    mirror = Mirror()
    first, horizon = read_changes(database, 0)
    mirror.apply(first)
    with other.write() as slow:
        slow_id = insert_a_job(slow, "slow")
        quick_id = add_job(database, "quick")  # a later number, committed earlier
        rows, horizon = read_changes(database, horizon)
        mirror.apply(rows)
        assert waiting(mirror) == {quick_id}
    rows, horizon = read_changes(database, horizon)
    mirror.apply(rows)
    assert waiting(mirror) == {slow_id, quick_id}
    assert same_as_cold(database, mirror)
    other.close()
    database.close()


def test_a_row_written_before_an_older_transaction_ends_is_read_again_then_no_more(
    database: Database,
) -> None:
    add_job(database, "one")
    _, horizon = read_changes(database, 0)
    again, following = read_changes(database, horizon)
    assert following >= horizon
    assert len(again.jobs) <= 1  # at the horizon itself: harmless
    add_job(database, "two")
    rows, _ = read_changes(database, following)
    assert "two" in _names(database, [row.job_id for row in rows.jobs])


def _names(database: Database, ids: list[int]) -> list[str]:
    with database.read() as connection:
        found = [job_rows.get_job_head(connection, job_id) for job_id in ids]
    return [row["name"] for row in found if row is not None]


def test_where_one_writes_at_a_time_nothing_is_read_twice(sqlite_url: str) -> None:
    database = open_database(sqlite_url)
    add_nodes(database)
    add_job(database, "first")
    _, horizon = read_changes(database, 0)
    again, horizon = read_changes(database, horizon)
    later = add_job(database, "later")
    rows, _ = read_changes(database, horizon)
    database.close()

    assert not any((again.jobs, again.classes, again.nodes, again.devices))
    assert [row.job_id for row in rows.jobs] == [later]


def test_everything_that_changes_a_decision_reaches_a_warm_mirror(database: Database) -> None:
    mirror, horizon = Mirror(), 0

    def follow() -> None:
        nonlocal horizon
        rows, horizon = read_changes(database, horizon)
        mirror.apply(rows)
        assert same_as_cold(database, mirror)

    follow()
    add_nodes(database, seen_node("node-a"), seen_node("node-b"))
    follow()
    job_ids = [add_job(database, name) for name in ("one", "two")]
    follow()
    grant = a_grant(job_ids[0], a_pod(gpus=(0, 1)))
    attempt_id = database.run_write(lambda writer: reserve(writer, grant))
    follow()
    fleet = mirror.snapshot(1).fleet
    cpu = int(fleet.free[0, fleet.resources.index("cpu")])
    assert (fleet.gpu_free[0] & 0b11, cpu, waiting(mirror)) == (0, 15_000, {job_ids[1]})
    database.run_write(lambda writer: free(writer, attempt_id, NOW_US))
    follow()
    assert not mirror.snapshot(1).usage
    seen = (seen_node("node-a", devices=seen_devices()[1:]),)
    database.run_write(lambda writer: sync_inventory(writer, seen, NOW_US))
    follow()
    database.run_write(_cordon)
    follow()
    assert mirror.snapshot(1).fleet.health[0] == "cordoned"


def _cordon(writer: Writer) -> None:
    node = get_node(writer.connection, "node-a")
    assert node is not None
    set_cordon(writer, node, "maintenance")


@pytest.mark.parametrize(
    "values", [{"state": JobState.HELD}, {"is_quarantined": True}, {"priority": 9}]
)
def test_a_changed_job_reaches_a_warm_mirror(database: Database, values: dict[str, Any]) -> None:
    job_id = add_job(database, "one")
    mirror = Mirror()
    rows, horizon = read_changes(database, 0)
    mirror.apply(rows)
    with database.write() as writer:
        row = job_rows.get_job_head(writer.connection, job_id)
        assert row is not None
        job_rows.change_job(writer, row, values)
    mirror.apply(read_changes(database, horizon)[0])
    assert same_as_cold(database, mirror)


def test_a_rolled_back_write_leaves_no_trace(database: Database) -> None:
    _, horizon = read_changes(database, 0)
    with pytest.raises(RuntimeError):
        database.run_write(failing)
    job_id = add_job(database, "kept")
    rows, _ = read_changes(database, horizon)
    assert [row.job_id for row in rows.jobs] == [job_id]


def test_a_write_after_a_rolled_back_savepoint_is_read(database: Database) -> None:
    _, horizon = read_changes(database, 0)
    with database.write() as writer:
        with pytest.raises(RuntimeError), writer.savepoint():
            failing(writer)
        job_id = insert_a_job(writer, "kept")
    rows, horizon = read_changes(database, horizon)
    assert [row.job_id for row in rows.jobs] == [job_id]
    after = add_job(database, "after")
    assert after in {row.job_id for row in read_changes(database, horizon)[0].jobs}


def test_definitions_that_are_known_are_not_brought_again(database: Database) -> None:
    rows, horizon = read_changes(database, 0)
    assert rows.definitions is not None
    known = Asked(generation=rows.definitions.generation)
    assert read_changes(database, horizon, known)[0].definitions is None
    database.run_write(bump_generation)
    assert read_changes(database, horizon, known)[0].definitions is not None


def test_definitions_and_completeness_come_with_a_cold_start(database: Database) -> None:
    add_nodes(database)
    database.run_write(set_inventory_complete)
    rows, _ = read_changes(database, 0)
    assert rows.definitions is not None
    assert [queue.name for queue in rows.definitions.queues] == ["default"]
    assert [flavor.name for flavor in rows.definitions.flavors] == ["default"]
    assert rows.is_inventory_complete is True
