"""GPU-time budgets and plain caps."""

import pytest

from gateway.core.queues.budgets import (
    SECOND_US,
    is_exhausted,
    next_change_us,
    spent_gpu_us,
    window_of,
)
from gateway.core.queues.caps import LiveUse, over_cap
from gateway.core.queues.definitions import Budget, Caps

HOURLY = Budget(gpu_seconds=100, window_seconds=3600, starts_us=500 * SECOND_US)
START = 500 * SECOND_US
END = START + 3600 * SECOND_US


def test_windows_follow_each_other_before_and_after_the_named_one() -> None:
    assert window_of(HOURLY, START) == (START, END)
    assert window_of(HOURLY, END - 1) == (START, END)
    assert window_of(HOURLY, END) == (END, END + 3600 * SECOND_US)
    assert window_of(HOURLY, START - 1) == (START - 3600 * SECOND_US, START)


def test_gpu_time_counts_from_reservation_to_release_within_the_window() -> None:
    ended = (2, START + 10 * SECOND_US, START + 15 * SECOND_US)
    held = (3, START + 20 * SECOND_US, 0)
    early = (1, START - 99 * SECOND_US, START + 4 * SECOND_US)
    long_gone = (8, START - 99 * SECOND_US, START - 9 * SECOND_US)
    now = START + 30 * SECOND_US
    assert spent_gpu_us(HOURLY, (ended, held, early, long_gone), now) == (10 + 30 + 4) * SECOND_US


def test_a_budget_is_exhausted_to_the_microsecond() -> None:
    held = ((3, START, 0),)
    at = START + 33_333_334
    assert next_change_us(HOURLY, held, START) == at
    assert not is_exhausted(HOURLY, held, at - 1)
    assert is_exhausted(HOURLY, held, at)


def test_an_exhausted_budget_is_full_again_with_the_next_window() -> None:
    spans = ((1, START, START + 100 * SECOND_US),)
    assert is_exhausted(HOURLY, spans, END - 1)
    assert next_change_us(HOURLY, spans, START + 200 * SECOND_US) == END
    assert not is_exhausted(HOURLY, spans, END)


def test_a_slow_gang_meets_the_end_of_the_window_before_that_of_the_budget() -> None:
    late = END - 10 * SECOND_US
    assert next_change_us(HOURLY, ((1, late, 0),), late) == END


def test_a_budget_that_nobody_uses_never_changes() -> None:
    spans = ((4, START, START + SECOND_US),)
    assert next_change_us(HOURLY, spans, START + 2 * SECOND_US) is None
    assert not is_exhausted(HOURLY, (), START)


def test_a_budget_of_nothing_is_always_exhausted() -> None:
    nothing = Budget(gpu_seconds=0, window_seconds=60)
    assert is_exhausted(nothing, (), 0)


NOBODY = LiveUse(running_jobs=0, user_running_jobs=0, user_gpus=0)


@pytest.mark.parametrize(
    ("caps", "use", "cap"),
    [
        (Caps(gpus_per_job=3), NOBODY, "gpus_per_job"),
        (Caps(running_jobs=0), NOBODY, "running_jobs"),
        (Caps(user_running_jobs=0), NOBODY, "user_running_jobs"),
        (Caps(user_gpus=3), NOBODY, "user_gpus"),
        (
            Caps(user_gpus=9),
            LiveUse(running_jobs=9, user_running_jobs=9, user_gpus=6),
            "user_gpus",
        ),
        (Caps(gpus_per_job=4, running_jobs=1, user_running_jobs=1, user_gpus=4), NOBODY, ""),
        (Caps(), LiveUse(running_jobs=10**6, user_running_jobs=10**6, user_gpus=10**6), ""),
    ],
)
def test_the_first_cap_that_a_job_of_four_gpus_would_break_is_named(
    caps: Caps, use: LiveUse, cap: str
) -> None:
    assert over_cap(caps, use, 4) == cap
