"""What queues define, jobs bring and charges remember reaches the decision, on both databases."""

from typing import Any

from sqlalchemy import insert, update

from gateway.core.mirror import ChargeRow, DefinitionRows
from gateway.core.queues.definitions import Ageing, Budget, Caps, DatedChange, Queue
from gateway.core.vocabulary import UNLIMITED, Blocking, OrderPolicy, WhenCanBorrow
from gateway.db.engine import Database, Writer
from gateway.db.mirror_reading import read_changes
from gateway.db.tables import cohorts, dated_changes, jobs, queues
from tests.db_rows import NOW_US, a_grant, add_job, add_nodes, free, reserve

HOUR_US = 3_600_000_000


def set_queue(database: Database, **values: Any) -> None:
    """Change the columns of queue `default`."""
    database.run_write(lambda writer: writer.connection.execute(update(queues).values(**values)))


def definitions(database: Database) -> DefinitionRows:
    """Give what a cold start reads of definitions."""
    found = read_changes(database, 0)[0].definitions
    assert found is not None
    return found


def test_a_fresh_queue_has_no_rule_at_all(database: Database) -> None:
    (queue,) = definitions(database).queues
    assert queue == Queue(name="default")
    assert queue.caps == Caps(**dict.fromkeys(Caps.__dataclass_fields__, UNLIMITED))


def test_every_rule_of_a_queue_is_read(database: Database) -> None:
    set_queue(
        database,
        order_policy="deadline",
        ageing={"per_hour": 2, "cap": 10},
        blocking="strict",
        when_can_borrow="try_next_flavor",
        caps={"running_jobs": 3, "user_gpus": 8},
        budget={"gpu_seconds": 3600, "window_seconds": 86400, "starts_us": 5},
    )
    (queue,) = definitions(database).queues
    assert queue.order == OrderPolicy.DEADLINE
    assert queue.ageing == Ageing(per_hour=2, cap=10)
    assert (queue.blocking, queue.when_can_borrow) == (
        Blocking.STRICT,
        WhenCanBorrow.TRY_NEXT_FLAVOR,
    )
    assert queue.caps == Caps(running_jobs=3, user_gpus=8)
    assert queue.budget == Budget(gpu_seconds=3600, window_seconds=86400, starts_us=5)


def test_dated_changes_come_by_instant_each_to_its_owner(database: Database) -> None:
    def work(writer: Writer) -> None:
        connection = writer.connection
        connection.execute(insert(cohorts).values(name="lab"))
        row = {"flavor": "default", "resource": "gpu", "borrowing_limit": None}
        for kind, owner, at_us, nominal in (
            ("queue", "default", 20, 4),
            ("cohort", "lab", 30, 2),
            ("queue", "default", 10, None),
        ):
            values = {**row, "owner_kind": kind, "owner": owner, "at_us": at_us}
            connection.execute(insert(dated_changes).values(**values, nominal=nominal))

    database.run_write(work)
    found = definitions(database)
    first, second = found.queues[0].changes
    assert first == DatedChange(at_us=10, flavor="default", resource="gpu")
    assert second == DatedChange(at_us=20, flavor="default", resource="gpu", nominal=4)
    assert [change.nominal for change in found.cohorts[0].changes] == [2]


def test_what_a_job_brings_for_its_order_is_read(database: Database) -> None:
    add_job(database, "one")
    values = {"rank": 7, "eligible_us": 1, "deadline_us": 2, "expected_seconds": 3}
    database.run_write(lambda writer: writer.connection.execute(update(jobs).values(**values)))
    (row,) = read_changes(database, 0)[0].jobs
    assert row[8:] == ("ann", 7, 1, 2, 3)
    assert row.is_quarantined is False


def ended(database: Database, name: str, held_us: tuple[int, int]) -> None:
    """Let a job hold one GPU from one instant to another."""
    job_id = add_job(database, name)
    grant = a_grant(job_id, at_us=held_us[0])
    attempt_id = database.run_write(lambda writer: reserve(writer, grant))
    database.run_write(lambda writer: free(writer, attempt_id, held_us[1]))


def test_a_charge_remembers_whose_it_is_and_how_long_it_was(database: Database) -> None:
    add_nodes(database)
    _, horizon = read_changes(database, 0)
    ended(database, "one", (NOW_US, NOW_US + HOUR_US))
    (charge,) = read_changes(database, horizon)[0].charges
    assert charge == ChargeRow(
        charge_id=charge.charge_id,
        queue="default",
        flavor="default",
        resource="gpu",
        amount=1,
        is_live=False,
        user="ann",
        reserved_us=NOW_US,
        closed_us=NOW_US + HOUR_US,
        attempt_id=charge.attempt_id,
    )
    assert charge.attempt_id > 0


def test_a_cold_start_reads_ended_gpu_time_only_where_a_budget_may_count_it(
    database: Database,
) -> None:
    add_nodes(database)
    for name, hours in (("old", (0, 1)), ("edge", (2, 4)), ("last", (5, 6))):
        ended(database, name, (NOW_US + hours[0] * HOUR_US, NOW_US + hours[1] * HOUR_US))
    assert read_changes(database, 0)[0].charges == ()
    budget = {"gpu_seconds": 1, "window_seconds": 3 * 3600, "starts_us": 0}
    set_queue(database, budget=budget)
    found = read_changes(database, 0)[0].charges
    assert [(row.closed_us - NOW_US) // HOUR_US for row in found] == [4, 6]
    set_queue(database, budget=None)
    assert read_changes(database, 0)[0].charges == ()
