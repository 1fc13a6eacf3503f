"""Queues that order by usage: what users held lately comes before everything else."""

from typing import Any

import pytest
from sqlalchemy import select

from gateway.core.policies.decay import CAPACITY_BITS, STORED_BITS, accrued, faded
from gateway.core.vocabulary import JobState
from gateway.db.engine import Row
from gateway.db.tables import user_usage
from gateway.errors import StaleLeader
from gateway.schemas.definitions import QueueSpec
from gateway.service import queues
from gateway.service.context import Caller
from gateway.service.user_usage import accrue_usage, capacity_of
from tests.builders import a_fleet
from tests.service_world import ADMIN, World, a_spec

WEEK_US = 7 * 86_400_000_000
HOUR_US = 3_600_000_000
ENDLESS = {"run-seconds": 10**7}
ALL = 1 << STORED_BITS
ANN = Caller(name="ann", namespaces=("team-a",))
BOB = Caller(name="bob", namespaces=("team-a",))


def rule(world: World, **rules: Any) -> None:
    spec = QueueSpec.model_validate({"name": "default", **rules})
    queues.update_queue(world.gateway, ADMIN, "default", spec)


@pytest.fixture
def fair(world: World) -> World:
    """Give a world whose queue orders by usage."""
    rule(world, order="fair_users")
    return world


def usages(world: World) -> dict[str, Row]:
    with world.gateway.database.read() as connection:
        rows = connection.execute(select(user_usage)).mappings()
        return {row["user_name"]: row for row in rows}


def test_a_gang_counts_at_once_as_if_it_had_run_as_long_as_expected(fair: World) -> None:
    fair.submit(a_spec("known", gpu=4, expected_seconds=7200), caller=ANN)
    fair.submit(a_spec("unknown", gpu=8), caller=BOB)
    fair.decide()
    at_start = {name: row["usage"] for name, row in usages(fair).items()}
    # Of sixteen GPUs; an hour is assumed of a job that does not say.
    assert at_start == {
        "ann": accrued(ALL // 4, 2 * HOUR_US, WEEK_US),
        "bob": accrued(ALL // 2, HOUR_US, WEEK_US),
    }


def test_at_its_end_a_gang_counts_for_what_it_really_used(fair: World) -> None:
    job = fair.submit(a_spec("short", gpu=8, script={"run-seconds": 60}), caller=ANN)
    fair.until(job, JobState.RUNNING)
    reserved_us = usages(fair)["ann"]["at_us"]
    fair.until(job, JobState.SUCCEEDED)
    row = usages(fair)["ann"]
    held_us = row["at_us"] - reserved_us
    assert 60_000_000 <= held_us < 90_000_000
    assert row["usage"] == pytest.approx(accrued(ALL // 2, held_us, WEEK_US), abs=2)


def test_a_gang_that_outlives_what_was_expected_counts_for_more_while_it_runs(fair: World) -> None:
    job = fair.submit(a_spec("long", gpu=8, expected_seconds=600, script=ENDLESS), caller=ANN)
    fair.until(job, JobState.RUNNING)
    at_start = usages(fair)["ann"]
    fair.turn(300)
    assert accrue_usage(fair.gateway) == 0, "it counted more than that at once"
    assert usages(fair)["ann"]["usage"] == at_start["usage"]
    fair.turn(3 * 86_400)
    assert accrue_usage(fair.gateway) == 1
    row = usages(fair)["ann"]
    held_us = row["at_us"] - at_start["at_us"]
    assert row["usage"] == pytest.approx(accrued(ALL // 2, held_us, WEEK_US), abs=2)
    assert accrue_usage(fair.gateway) == 0, "nothing more at the same instant"


def test_what_was_counted_while_it_ran_is_not_counted_again_at_its_end(fair: World) -> None:
    job = fair.submit(a_spec("long", gpu=8, script={"run-seconds": 9000}), caller=ANN)
    fair.until(job, JobState.RUNNING)
    reserved_us = usages(fair)["ann"]["at_us"]
    for _ in range(3):
        fair.turn(2500)
        accrue_usage(fair.gateway)
    fair.until(job, JobState.RUNNING)
    fair.turn(2500)
    fair.until(job, JobState.SUCCEEDED)
    row = usages(fair)["ann"]
    assert row["usage"] == pytest.approx(
        accrued(ALL // 2, row["at_us"] - reserved_us, WEEK_US), abs=8
    )


def test_only_the_leader_counts(fair: World) -> None:
    job = fair.submit(a_spec("long", gpu=8, script=ENDLESS), caller=ANN)
    fair.until(job, JobState.RUNNING)
    fair.turn(86_400)
    epoch, fair.gateway.leadership.epoch = fair.gateway.leadership.epoch, None
    assert accrue_usage(fair.gateway) == 0
    fair.gateway.leadership.epoch = (epoch or 0) - 1
    with pytest.raises(StaleLeader):
        accrue_usage(fair.gateway)


def test_two_gangs_of_one_cycle_count_together(fair: World) -> None:
    for name in ("one", "two"):
        fair.submit(a_spec(name, gpu=4), caller=ANN)
    fair.decide()
    assert usages(fair)["ann"]["usage"] == 2 * accrued(ALL // 4, HOUR_US, WEEK_US)


def test_who_used_less_lately_comes_first_however_late_and_low(fair: World) -> None:
    both = a_spec("both", gpu=8, workers=1, script={"run-seconds": 60})
    first = fair.submit(both, caller=ANN)
    fair.until(first, JobState.RUNNING)
    again = fair.submit(a_spec("again", gpu=8, workers=1, priority=5), caller=ANN)
    other = fair.submit(a_spec("other", gpu=8, workers=1), caller=BOB)
    fair.until(first, JobState.SUCCEEDED)
    fair.until(other, JobState.RUNNING)
    assert fair.state(again) is JobState.PENDING


def test_a_cold_start_reads_the_same_usage(fair: World) -> None:
    fair.submit(a_spec("one", gpu=8), caller=ANN)
    fair.turn()
    fair.decide()
    warm = fair.gateway.mirror.mirror.snapshot(0).user_usage
    fair.gateway.mirror = type(fair.gateway.mirror)()
    fair.decide()
    cold = fair.gateway.mirror.mirror.snapshot(0).user_usage
    assert warm == cold
    (told,) = cold
    shift = STORED_BITS - CAPACITY_BITS
    assert told.usage == (accrued(ALL // 2, HOUR_US, WEEK_US) + (1 << shift - 1)) >> shift


def test_nothing_is_counted_in_queues_of_another_order(world: World) -> None:
    job = world.submit(a_spec("one", gpu=8, script={"run-seconds": 60}), caller=ANN)
    world.until(job, JobState.RUNNING)
    # What was not counted at the start is not counted at the end, whatever the order is by then.
    rule(world, order="fair_users")
    world.until(job, JobState.SUCCEEDED)
    assert usages(world) == {}


def test_a_gang_that_began_to_count_goes_on_after_the_order_changed(fair: World) -> None:
    job = fair.submit(a_spec("one", gpu=8, script={"run-seconds": 60}), caller=ANN)
    fair.until(job, JobState.RUNNING)
    entry = usages(fair)["ann"]
    rule(fair, order="priority")
    fair.until(job, JobState.SUCCEEDED)
    row = usages(fair)["ann"]
    assert row["usage"] < faded(entry["usage"], row["at_us"] - entry["at_us"], WEEK_US)


def test_the_fleet_s_capacity_counts_devices_whether_free_or_not() -> None:
    capacity = capacity_of(a_fleet())
    assert (capacity["gpu"], capacity["rdma"], capacity["cpu"]) == (16, 16, 384_000)
