"""The last judge: one winner for each device, a whole gang or nothing, everything back once."""

import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from sqlalchemy import func, insert, select, update
from sqlalchemy.exc import IntegrityError

from gateway.core.vocabulary import DeviceKind, JobState
from gateway.db.engine import Database, Row
from gateway.db.grants import Grant, GrantConflict
from gateway.db.tables import (
    assignments,
    attempts,
    charges,
    device_grants,
    devices,
    jobs,
    node_amounts,
    nodes,
)
from gateway.errors import GatewayError, StaleVersion
from tests.db_rows import GIB, NOW_US, a_grant, a_pod, add_job, add_nodes, free, reserve, seen_node


def reserved(database: Database, grant: Grant) -> int:
    """Reserve in a savepoint, as the service does; gives the attempt's row id."""
    with database.write() as writer, writer.savepoint():
        return reserve(writer, grant)


def committed(database: Database, grant: Grant) -> int:
    """Reserve in a transaction of its own, again after a deadlock."""
    return database.run_write(lambda writer: reserve(writer, grant))


def freed(database: Database, attempt_id: int) -> bool:
    return database.run_write(lambda writer: free(writer, attempt_id, NOW_US))


def free_amounts(database: Database) -> dict[str, int]:
    with database.read() as connection:
        return {row.resource: row.free for row in connection.execute(select(node_amounts))}


def units(database: Database) -> dict[tuple[str, int], int]:
    with database.read() as connection:
        return {
            (row.kind, row.ordinal): row.units_free for row in connection.execute(select(devices))
        }


def job_row(database: Database, job_id: int) -> Row:
    with database.read() as connection:
        return connection.execute(select(jobs).where(jobs.c.id == job_id)).mappings().one()


def count(database: Database, table: Any) -> int:
    with database.read() as connection:
        return connection.execute(select(func.count()).select_from(table)).scalar_one()


def in_threads(*works: Callable[[], Any]) -> list[Any]:
    """Run at once; gives each result or error."""
    results: list[Any] = [None] * len(works)
    barrier = threading.Barrier(len(works))

    def run(index: int) -> None:
        barrier.wait()
        try:
            results[index] = works[index]()
        except GatewayError as error:
            results[index] = error

    threads = [threading.Thread(target=run, args=(index,)) for index in range(len(works))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    return results


def test_a_grant_takes_devices_amounts_and_quota(database: Database) -> None:
    add_nodes(database)
    job_id = add_job(database, "one")
    attempt_id = reserved(database, a_grant(job_id, a_pod(gpus=(0, 1))))
    assert attempt_id > 0
    assert units(database)[DeviceKind.GPU, 0] == units(database)[DeviceKind.GPU, 1] == 0
    assert units(database)[DeviceKind.RDMA, 0] == 100
    assert free_amounts(database) == {"cpu": 15_000, "memory": 63 * GIB, "pods": 109}
    job = job_row(database, job_id)
    assert (job["state"], job["version"], job["attempt"]) == (JobState.RESERVED, 2, 1)
    assert count(database, charges) == 1


def test_of_two_writers_that_race_for_a_device_exactly_one_wins(database: Database) -> None:
    add_nodes(database)
    for round_number in range(5):
        job_ids = [add_job(database, f"job-{round_number}-{i}") for i in range(2)]
        works = [partial(committed, database, a_grant(job_id)) for job_id in job_ids]
        results = in_threads(*works)
        winners = [result for result in results if isinstance(result, int)]
        losers = [result for result in results if isinstance(result, GrantConflict)]
        assert (len(winners), len(losers)) == (1, 1), results
        assert units(database)[DeviceKind.GPU, 0] == 0
        freed(database, winners[0])


def test_of_two_plans_for_one_job_exactly_one_is_kept(database: Database) -> None:
    add_nodes(database)
    job_id = add_job(database, "one")
    results = in_threads(
        partial(committed, database, a_grant(job_id, a_pod(gpus=(0,)))),
        partial(committed, database, a_grant(job_id, a_pod(gpus=(1,)))),
    )
    assert sorted(type(result).__name__ for result in results) == ["StaleVersion", "int"]
    assert sorted(units(database).values()) == [0, 100, 100, 100]


def test_a_second_live_whole_grant_of_a_device_is_refused_by_the_index(database: Database) -> None:
    add_nodes(database)
    reserved(database, a_grant(add_job(database, "one")))
    with database.read() as connection:
        held = connection.execute(select(device_grants)).mappings().one()
    again = {"units": 100, "is_whole": True, "device_id": held["device_id"]}
    with pytest.raises(IntegrityError), database.write() as writer:
        writer.connection.execute(
            insert(device_grants).values(**again, assignment_id=held["assignment_id"])
        )


@pytest.mark.parametrize(
    ("table", "values"),
    [
        (devices, {"units_free": -1}),
        (devices, {"units_free": 101}),
        (node_amounts, {"free": -1}),
        (jobs, {"state": "lost"}),
        (jobs, {"state": "stopping"}),
        (jobs, {"state": "failed"}),
        (attempts, {"phase": "closed"}),
    ],
)
def test_nonsense_is_refused_by_checks(
    database: Database, table: Any, values: dict[str, Any]
) -> None:
    add_nodes(database)
    reserved(database, a_grant(add_job(database, "one")))
    with pytest.raises(IntegrityError), database.write() as writer:
        writer.connection.execute(update(table).values(**values))


def test_a_gang_is_reserved_whole_or_not_at_all(database: Database) -> None:
    add_nodes(database, seen_node("node-a"), seen_node("node-b"))
    reserved(database, a_grant(add_job(database, "one"), a_pod(2, gpus=(1,))))
    gang = a_grant(
        add_job(database, "two"),
        a_pod(1, gpus=(0, 1), rank=0),
        a_pod(2, gpus=(0, 1), rank=1, index=1),
    )
    before = (units(database), count(database, assignments), count(database, attempts))
    with pytest.raises(GrantConflict):
        reserved(database, gang)
    assert (units(database), count(database, assignments), count(database, attempts)) == before
    assert job_row(database, gang.job_id)["state"] == JobState.PENDING


def test_a_conflict_drops_only_that_gang_of_a_batch(database: Database) -> None:
    add_nodes(database)
    job_ids = [add_job(database, f"job-{i}") for i in range(3)]
    wanted = [(0,), (0,), (1,)]
    dropped: list[int] = []
    with database.write() as writer:
        for job_id, gpus in zip(job_ids, wanted, strict=True):
            try:
                with writer.savepoint():
                    reserve(writer, a_grant(job_id, a_pod(gpus=gpus)))
            except GrantConflict:
                dropped.append(job_id)
    assert dropped == [job_ids[1]]
    states = [job_row(database, job_id)["state"] for job_id in job_ids]
    assert states == [JobState.RESERVED, JobState.PENDING, JobState.RESERVED]


def test_a_plan_for_a_changed_job_is_stale(database: Database) -> None:
    add_nodes(database)
    job_id = add_job(database, "one")
    with pytest.raises(StaleVersion):
        reserved(database, a_grant(job_id, version=7))


def test_amounts_are_never_taken_below_zero(database: Database) -> None:
    add_nodes(database, seen_node(total={"cpu": 1500, "memory": 64 * GIB, "pods": 110}))
    reserved(database, a_grant(add_job(database, "one")))
    with pytest.raises(GrantConflict, match="1000 cpu"):
        reserved(database, a_grant(add_job(database, "two"), a_pod(gpus=(1,))))
    assert free_amounts(database)["cpu"] == 500


@pytest.mark.parametrize(
    "change", [{"is_present": False}, {"is_foreign": True}, {"health": "unhealthy"}]
)
def test_an_unusable_device_is_granted_to_nobody(
    database: Database, change: dict[str, Any]
) -> None:
    add_nodes(database)
    with database.write() as writer:
        writer.connection.execute(update(devices).values(**change))
    with pytest.raises(GrantConflict):
        reserved(database, a_grant(add_job(database, "one")))


@pytest.mark.parametrize(
    "change", [{"is_present": False}, {"is_cordoned": True}, {"health": "unhealthy"}]
)
def test_a_node_that_left_service_since_the_plan_takes_nobody(
    database: Database, change: dict[str, Any]
) -> None:
    add_nodes(database)
    with database.write() as writer:
        writer.connection.execute(update(nodes).values(**change))
    with pytest.raises(GrantConflict):
        reserved(database, a_grant(add_job(database, "one"), a_pod(gpus=())))


def test_freeing_gives_everything_back_exactly_once(database: Database) -> None:
    add_nodes(database)
    before = (units(database), free_amounts(database))
    attempt_id = reserved(database, a_grant(add_job(database, "one"), a_pod(gpus=(0, 1))))
    assert freed(database, attempt_id) is True
    assert (units(database), free_amounts(database)) == before
    assert freed(database, attempt_id) is False
    assert (units(database), free_amounts(database)) == before
    with database.read() as connection:
        assert not connection.execute(select(charges.c.is_live)).scalar_one()


def test_reservations_and_returns_at_once_leave_exact_amounts(database: Database) -> None:
    add_nodes(database, seen_node(devices=()))
    job_ids = [add_job(database, f"job-{i}") for i in range(8)]

    def live_and_let_go(job_id: int) -> None:
        attempt_id = committed(database, a_grant(job_id, a_pod(gpus=())))
        if job_id % 2:
            freed(database, attempt_id)

    in_threads(*[partial(live_and_let_go, job_id) for job_id in job_ids])
    held = sum(1 for job_id in job_ids if job_id % 2 == 0)
    assert free_amounts(database)["cpu"] == 16_000 - 1000 * held
    assert free_amounts(database)["pods"] == 110 - held
