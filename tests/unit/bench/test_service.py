"""The arithmetic of the open-arrival run: who waited for what, and what a run comes to."""

import json

import pytest

from tests.bench._arrivals import BASELINE_PACES, lines_of
from tests.bench._turnaround import Course, quantile, turnarounds
from tests.bench.service import GOAL, Outcome, figures_of, outcome_of
from tests.bench.service_cluster import GOAL as CLUSTER


def a_course(cpus: int, arrived: float, started: float, finished: float) -> Course:
    return Course("cohort", cpus, arrived, started, finished)


def test_quota_that_nobody_used_before_has_waited_for_nobody() -> None:
    assert turnarounds([a_course(2, 0.0, 5.0, 6.0)], quota=4) == []


def test_each_freed_cpu_waits_from_its_finish_to_the_start_that_takes_it() -> None:
    courses = [a_course(2, 0, 1, 2), a_course(1, 0, 2.25, 3), a_course(1, 0, 2.5, 3)]
    assert turnarounds(courses, quota=2) == [0.25, 0.5]


def test_the_cpu_that_has_been_free_longest_is_taken_first() -> None:
    courses = [a_course(1, 0, 1, 2), a_course(1, 0, 1, 4), a_course(1, 0, 5, 6)]
    assert turnarounds(courses, quota=2) == [3]


def test_a_wait_begins_with_the_arrival_where_nobody_was_there_before() -> None:
    courses = [a_course(1, 0, 1, 2), a_course(1, 10, 10.5, 11)]
    assert turnarounds(courses, quota=1) == [0.5]


def test_cohorts_wait_each_for_their_own() -> None:
    courses = [a_course(1, 0, 1, 2), Course("other", 1, 0, 3, 4)]
    assert turnarounds(courses, quota=1) == []


def test_a_quantile_is_a_value_that_was_seen() -> None:
    assert quantile([4.0, 1.0, 2.0, 3.0], 0.95) == 4.0
    assert quantile([4.0, 1.0, 2.0, 3.0], 0.5) == 3.0


def test_a_queue_has_a_loop_for_each_class_with_all_its_jobs() -> None:
    orders = {"token": "t", "queues": ["queue-0-cohort-0"], "share": 1}
    lines = list(lines_of(orders))
    assert [(line.interval, len(line.requests)) for line in lines] == [
        (0.1, 350),
        (0.5, 100),
        (1.2, 50),
    ]
    body = json.loads(lines[2].requests[0].partition(b"\r\n\r\n")[2])
    assert body["overrides"] == {"queue": "queue-0-cohort-0", "priority": 200}
    assert body["manifest"]["metadata"]["namespace"] == "queue-0-cohort-0"
    work = sum(pace.kind.jobs * pace.kind.cpu * pace.runs for pace in BASELINE_PACES)
    assert work == 1_320_000


def a_row(state: str = "succeeded") -> dict[str, object]:
    times = {"submitted_us": 100_000_000, "ended_us": 103_000_000}
    return {"uid": "u", "name": "large-0", "queue": "queue-0-cohort-1", "state": state, **times}


def test_a_run_ends_with_the_last_job() -> None:
    rows = [a_row(), {**a_row(), "uid": "v"}]
    opened = {"queue-0-cohort-1/u": 101.5, "queue-0-cohort-1/v": 102.5}
    outcome = outcome_of(rows, {"opened": opened, "cpu_seconds": 0.5}, started_at=99.0)
    # The first 40 of 120 CPUs were never used before, so no CPU has waited.
    assert outcome == Outcome(4.0, 0.0, 0.5, 2)


def test_a_run_in_which_a_job_failed_has_no_figures() -> None:
    with pytest.raises(RuntimeError, match="1 jobs did not succeed, large-0"):
        outcome_of([a_row("failed")], {"opened": {}, "cpu_seconds": 1.0}, 0.0)


def test_the_figures_stand_beside_their_targets() -> None:
    wall, turnaround, cpu = figures_of([Outcome(70.0, 0.1, 15.0, 15_000)], GOAL)
    assert (wall.target, turnaround.target) == (80, 0.13)
    assert (wall.higher_is_better, cpu.value) == (False, 1.0)


def test_a_run_beside_a_cluster_is_named_and_held_against_its_own_peer() -> None:
    names = [
        each.name for each in figures_of([Outcome(70.0, 0.1, 15.0, 15_000)], CLUSTER, "_cluster")
    ]
    assert names[0] == "service.baseline_cluster_seconds"
    assert (CLUSTER.wall, CLUSTER.peer_wall) == (150, 388)
