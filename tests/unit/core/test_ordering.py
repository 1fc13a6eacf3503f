"""Order policies to the microsecond: stages, keys, and the instants at which jobs change stage."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from gateway.core.policies.ordering import (
    HOUR_US,
    MOST_PER_HOUR,
    ORDERING,
    SECOND_US,
    Places,
    Standing,
    deadline,
    priority,
    shortest,
)
from gateway.core.queues.definitions import Ageing
from gateway.core.vocabulary import UNLIMITED, OrderPolicy
from gateway.schemas.queue_rules import AgeingSpec

NO_AGEING = Ageing()
NEVER = UNLIMITED


def a_standing(*jobs: dict[str, int]) -> Standing:
    """Give jobs as columns; what is left out is 0, and one GPU."""
    values = {
        name: [job.get(name, 1 if name == "gpus" else 0) for job in jobs]
        for name in Standing._fields
    }
    return Standing(**{name: np.array(column, dtype=np.int64) for name, column in values.items()})


def listed(places: Places) -> list[tuple[int, int, int]]:
    """Give (stage, key, until) of each job."""
    return list(zip(*(column.tolist() for column in places), strict=True))


def test_without_ageing_the_number_alone_counts_and_for_ever() -> None:
    jobs = a_standing({"priority": 3}, {"priority": -2, "since_us": 9})
    assert listed(priority(jobs, NO_AGEING, 10)) == [
        (0, -3 * HOUR_US, NEVER),
        (0, 2 * HOUR_US, NEVER),
    ]


def test_a_job_ages_until_the_instant_at_which_it_is_at_the_cap() -> None:
    ageing = Ageing(per_hour=2, cap=3)
    job = a_standing({"priority": 1, "since_us": 100})
    capped_us = 100 + HOUR_US * 3 // 2
    assert listed(priority(job, ageing, capped_us - 1)) == [(0, 200 - HOUR_US, capped_us)]
    assert listed(priority(job, ageing, capped_us)) == [(1, -4 * HOUR_US, NEVER)]


@pytest.mark.parametrize(("per_hour", "wait_us"), [(7, 514_285_715), (1, HOUR_US), (1000, 3600000)])
def test_the_cap_is_never_said_to_be_reached_too_soon(per_hour: int, wait_us: int) -> None:
    (place,) = listed(priority(a_standing({}), Ageing(per_hour=per_hour, cap=1), 0))
    assert place[2] == wait_us
    assert per_hour * wait_us >= HOUR_US > per_hour * (wait_us - 1)


numbers = st.integers(-(10**9), 10**9)
"""What may be submitted."""
instants = st.integers(0, 4_000_000_000_000_000)


@given(numbers, st.integers(1, MOST_PER_HOUR), st.integers(0, 10**9), instants, instants)
def test_a_key_is_the_number_with_what_waiting_added(
    number: int, per_hour: int, cap: int, since_us: int, now_us: int
) -> None:
    jobs = a_standing({"priority": number, "since_us": since_us})
    ageing = Ageing(per_hour=per_hour, cap=cap)
    now_us = max(now_us, since_us)
    ((stage, key, _),) = listed(priority(jobs, ageing, now_us))
    # Keys of the first stage all fall by the same amount while time passes.
    standing = key - per_hour * now_us if stage == 0 else key
    gained = min(Fraction(cap), Fraction(per_hour * (now_us - since_us), HOUR_US))
    assert Fraction(-standing, HOUR_US) == number + gained


@pytest.mark.parametrize("number", [-(10**9), 10**9])
def test_the_fastest_ageing_of_the_largest_numbers_does_not_overflow(number: int) -> None:
    now_us = 4_000_000_000_000_000
    jobs = a_standing({"priority": number, "since_us": now_us})
    ageing = Ageing(per_hour=MOST_PER_HOUR, cap=10**9)
    ((_, key, _),) = listed(priority(jobs, ageing, now_us))
    assert key == MOST_PER_HOUR * now_us - number * HOUR_US
    with pytest.raises(ValidationError):
        AgeingSpec(per_hour=MOST_PER_HOUR + 1)


def test_the_latest_start_counts_and_a_missed_one_comes_after_all_that_can_be_met() -> None:
    job = a_standing({"deadline_us": 100 * SECOND_US, "expected_seconds": 60})
    latest_us = 40 * SECOND_US
    assert listed(deadline(job, NO_AGEING, latest_us)) == [(0, latest_us, latest_us + 1)]
    assert listed(deadline(job, NO_AGEING, latest_us + 1)) == [(1, latest_us, NEVER)]


def test_a_deadline_that_could_never_be_met_is_late_from_the_start() -> None:
    job = a_standing({"deadline_us": SECOND_US, "expected_seconds": 3600})
    assert listed(deadline(job, NO_AGEING, 0)) == [(1, -3599 * SECOND_US, NEVER)]


def test_jobs_without_a_deadline_come_last_by_age_alone() -> None:
    jobs = a_standing({"expected_seconds": 5}, {"expected_seconds": 7, "since_us": 3})
    assert listed(deadline(jobs, NO_AGEING, 10)) == [(2, 0, NEVER)] * 2


def test_gpu_time_counts_and_each_second_of_waiting_makes_up_for_one() -> None:
    jobs = a_standing(
        {"expected_seconds": 20, "gpus": 2, "since_us": 10 * SECOND_US},
        {"expected_seconds": 50, "gpus": 1},
        {"since_us": 5},
    )
    assert listed(shortest(jobs, NO_AGEING, 99)) == [
        (0, 50 * SECOND_US, NEVER),
        (0, 50 * SECOND_US, NEVER),
        (1, 5, NEVER),
    ]


def test_a_job_without_gpus_of_known_length_comes_before_those_of_unknown_length() -> None:
    jobs = a_standing({"expected_seconds": 9, "gpus": 0, "since_us": 4}, {"gpus": 0})
    assert listed(shortest(jobs, NO_AGEING, 0)) == [(0, 4, NEVER), (1, 0, NEVER)]


@given(st.integers(1, 2**40), st.integers(0, 2**40))
def test_no_length_and_width_wraps_a_key_round(seconds: int, gpus: int) -> None:
    now_us = 1_800_000_000_000_000
    job = a_standing({"expected_seconds": seconds, "gpus": gpus, "since_us": now_us})
    ((_, key, _),) = listed(shortest(job, NO_AGEING, now_us))
    assert now_us <= key <= now_us + 2**40 * SECOND_US


@pytest.mark.parametrize("name", list(OrderPolicy))
def test_every_policy_places_nobody_and_names_its_stages(name: OrderPolicy) -> None:
    ordering = ORDERING[name]
    assert listed(ordering.place(a_standing(), Ageing(per_hour=1, cap=1), 0)) == []
    ranks = [stage.rank for stage in ordering.stages]
    assert ranks == sorted(ranks)
    assert ordering.by_user is (name is OrderPolicy.FAIR_USERS)
