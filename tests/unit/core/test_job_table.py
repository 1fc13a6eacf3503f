"""Waiting jobs by slot: what is found, what is stale, and what is given back."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.waiting.run import LEAST_NEWCOMERS, SortedRun
from gateway.core.waiting.table import GONE, PARKED, JobTable, NewJob


def a_job(job_id: int, **changes: object) -> NewJob:
    values: dict[str, object] = {
        "version": 1,
        "queue": "q",
        "class_id": 7,
        "user": "ann",
        "priority": 0,
        "rank": 0,
        "submitted_us": job_id,
    }
    return NewJob(job_id=job_id, **{**values, **changes})  # type: ignore[arg-type]  # by name


def a_table(*job_ids: int) -> JobTable:
    table = JobTable()
    table.add([a_job(job_id) for job_id in job_ids])
    return table


def a_run(table: JobTable, keys: Sequence[int]) -> SortedRun:
    """Give a run of jobs in stage 0 with these keys, slots from 0."""
    slots = np.arange(len(keys), dtype=np.int64)
    table.stage[slots], table.key[slots] = 0, keys
    run = SortedRun(table, stage=0)
    run.add(slots)
    return run


def test_new_jobs_are_parked_and_keep_what_they_came_with() -> None:
    table = JobTable()
    job = a_job(5, queue="lab", user="bob", priority=-3, rank=2, eligible_us=9, deadline_us=8)
    assert table.add([a_job(4), job]).tolist() == [0, 1]
    assert (table.stage[1], table.job_id[1], table.priority[1], table.rank[1]) == (PARKED, 5, -3, 2)
    assert table.words["queue"][table.queue[1]] == "lab"
    assert table.words["user"][table.user[1]] == "bob"
    assert table.sparse("eligible_us", [0, 1]).tolist() == [0, 9]
    assert table.sparse("deadline_us", [1, 0]).tolist() == [8, 0]
    assert table.sparse("expected_seconds", [0, 1]).tolist() == [0, 0]


def test_names_get_numbers_that_do_not_depend_on_the_order_within_a_load() -> None:
    tables = [JobTable(), JobTable()]
    jobs = [a_job(1, user="cid"), a_job(2, user="ann"), a_job(3, user="bob")]
    tables[0].add(jobs)
    tables[1].add([jobs[1], jobs[2], jobs[0]])
    assert [table.words["user"] for table in tables] == [["ann", "bob", "cid"]] * 2
    assert tables[0].code("user", "ann") == 0
    assert tables[0].code("user", "dan") == 3


@pytest.mark.parametrize("ids", [(1, 2, 5), (5, 2, 1), (2, 5, 1)])
def test_a_job_is_found_in_whatever_order_ids_came(ids: tuple[int, ...]) -> None:
    table = a_table(*ids)
    assert [table.find(job_id) for job_id in ids] == [0, 1, 2]
    assert [table.find(job_id) for job_id in (0, 3, 9)] == [None] * 3
    table.remove(1)
    assert table.find(ids[1]) is None
    assert (len(table), table.gone, table.stage[1]) == (2, 1, GONE)


@given(st.sets(st.integers(1, 60)), st.lists(st.integers(0, 70), max_size=40))
def test_many_are_found_like_one_by_one(ids: set[int], asked: list[int]) -> None:
    # Ids that fall, now and then: those cannot be found by bisection.
    table = a_table(*sorted(ids, reverse=len(ids) % 2 == 0))
    for job_id in [job_id for job_id in ids if job_id % 3 == 0]:
        table.remove(table.find(job_id) or 0)
    expected = [slot for job_id in asked if (slot := table.find(job_id)) is not None]
    assert table.find_all(asked) == expected


def test_a_job_that_comes_again_is_found_in_its_new_slot() -> None:
    table = a_table(1, 2)
    table.remove(0)
    table.add([a_job(1, priority=4, expected_seconds=3)])
    assert table.find(1) == 2
    assert table.priority[2] == 4
    table.remove(2)
    assert table.find(1) is None
    assert table.expected_seconds == {}, "nobody needs what a job that left had"


def test_laying_out_anew_leaves_no_gap_and_orders_by_job() -> None:
    table = a_table(9, 3, 5)
    table.add([a_job(4, deadline_us=6)])
    table.remove(1)
    anew = table.without_gone()
    assert anew.job_id.tolist() == [4, 5, 9]
    assert anew.stage.tolist() == [PARKED] * 3
    assert anew.deadline_us == {0: 6}
    assert [anew.find(job_id) for job_id in (3, 4, 5, 9)] == [None, 0, 1, 2]
    assert (len(anew), anew.gone) == (3, 0)


def test_a_table_grows_without_losing_anybody() -> None:
    table = JobTable()
    for first in range(1, 1000, 37):
        table.add([a_job(job_id) for job_id in range(first, first + 37)])
    count = len(table)
    assert table.job_id[:count].tolist() == list(range(1, count + 1))
    assert len(table.job_id) < count * 1.2, "a million must stay cheap"


def test_a_run_stands_by_key_then_age_then_job() -> None:
    table = JobTable()
    table.add([a_job(1, submitted_us=9), a_job(2, submitted_us=3), a_job(4), a_job(3)])
    table.submitted_us[2:4] = 3
    run = a_run(table, [5, 5, 5, 5])
    assert [entry[2] for entry in run.walk()] == [2, 3, 4, 1]
    assert run.first() == (5, 3, 2, 1)


def test_whoever_left_the_stage_is_passed_over_at_the_head_and_inside() -> None:
    table = a_table(1, 2, 3, 4)
    run = a_run(table, [1, 2, 3, 4])
    table.stage[0], table.stage[2] = GONE, 1
    assert run.first() == (2, 2, 2, 1)
    assert [entry[2] for entry in run.walk()] == [2, 4]
    table.stage[:4] = GONE
    assert run.first() is None
    assert list(run.walk()) == []


def test_newcomers_stand_where_they_belong_before_they_are_merged() -> None:
    table = a_table(*range(1, 203))
    table.stage[:202] = 0
    table.key[:202] = [*range(0, 400, 2), 3, -1]
    run = SortedRun(table, stage=0)
    run.add(np.arange(200, dtype=np.int64))
    assert run.first() == (0, 1, 1, 0)
    run.add(np.array([200, 201], dtype=np.int64))
    assert [entry[0] for entry in run.walk()][:5] == [-1, 0, 2, 3, 4]
    assert run.first() == (-1, 202, 202, 201)
    assert LEAST_NEWCOMERS > 2
