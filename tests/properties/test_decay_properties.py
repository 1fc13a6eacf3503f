"""Usage that fades: whatever the order and the instants, the same past gives the same usage."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.policies.decay import (
    CAPACITY_BITS,
    STORED_BITS,
    Usage,
    accrued,
    added,
    at_landmark,
    faded,
    part_of,
)

DAY_US = 86_400_000_000
WEEK_US = 7 * DAY_US
ALL = 1 << STORED_BITS

parts = st.integers(0, ALL)
spans = st.integers(0, 100 * WEEK_US)
half_lives = st.sampled_from([60_000_000, DAY_US, WEEK_US])


def test_usage_halves_with_each_half_life() -> None:
    assert [faded(ALL, weeks * WEEK_US, WEEK_US) for weeks in range(4)] == [
        ALL,
        ALL // 2,
        ALL // 4,
        ALL // 8,
    ]


def test_whoever_held_all_for_a_half_life_has_half_as_usage_and_all_in_the_end() -> None:
    assert accrued(ALL, WEEK_US, WEEK_US) == ALL // 2
    assert accrued(ALL, 2 * WEEK_US, WEEK_US) == ALL * 3 // 4
    assert accrued(ALL, 1000 * WEEK_US, WEEK_US) == ALL
    assert accrued(ALL, 0, WEEK_US) == 0


def test_a_short_use_of_little_is_not_lost() -> None:
    one_of_many = part_of({"gpu": 1}, {"gpu": 10_000})
    second = accrued(one_of_many, 1_000_000, WEEK_US)
    assert second == round(one_of_many * math.log(2) / 604_800)
    assert second > 100


def test_a_gang_counts_by_its_scarcest_resource() -> None:
    capacity = {"gpu": 64, "cpu": 1_000_000, "pods": 110}
    assert part_of({"gpu": 8, "cpu": 1000}, capacity) == ALL // 8
    assert part_of({"gpu": 1, "cpu": 500_000}, capacity) == ALL // 2
    assert part_of({"gpu": 65}, capacity) == ALL, "a fleet that shrank"
    assert part_of({"fpga": 3}, capacity) == 0
    assert part_of({"gpu": 1}, {"gpu": 0}) == 0
    assert part_of({}, capacity) == 0


@given(parts, spans, spans, half_lives)
def test_fading_in_two_steps_is_fading_once(part: int, first: int, then: int, half: int) -> None:
    once = faded(part, first + then, half)
    assert faded(faded(part, first, half), then, half) == pytest.approx(once, abs=1.5)


@given(parts, spans, spans, half_lives)
def test_holding_in_two_stretches_is_holding_once(
    part: int, first: int, then: int, half: int
) -> None:
    whole = accrued(part, first + then, half)
    halves = faded(accrued(part, first, half), then, half) + accrued(part, then, half)
    assert halves == pytest.approx(whole, abs=2.5)


@given(parts, spans, half_lives)
def test_nobody_used_more_than_was_held_or_less_than_nothing(
    part: int, held: int, half: int
) -> None:
    assert 0 <= accrued(part, held, half) <= part
    assert accrued(part, held, half) <= accrued(part, held + half, half)
    assert faded(part, held + half, half) <= faded(part, held, half) <= part


@given(parts, spans, spans, half_lives)
def test_what_was_counted_at_the_start_is_taken_back_at_the_end(
    part: int, expected: int, held: int, half: int
) -> None:
    entry = accrued(part, expected, half)
    started = added(Usage(0, 5), entry, 7, half)
    ended = added(started, accrued(part, held, half) - faded(entry, held, half), 7 + held, half)
    assert ended.at_us == 7 + held
    assert ended.amount == pytest.approx(accrued(part, held, half), abs=2)


@given(st.lists(st.tuples(parts, spans), min_size=1, max_size=6), half_lives)
def test_the_order_of_notes_does_not_matter(notes: list[tuple[int, int]], half: int) -> None:
    def total(ordered: list[tuple[int, int]]) -> Usage:
        usage = Usage(0, 0)
        for amount, at_us in ordered:
            usage = added(usage, amount, at_us, half)
        return usage

    forwards, backwards = total(sorted(notes)), total(sorted(notes)[::-1])
    assert forwards.at_us == backwards.at_us == max(at_us for _, at_us in notes)
    assert forwards.amount == pytest.approx(backwards.amount, abs=len(notes) + 1)


def test_more_than_there_is_cannot_be_taken_back() -> None:
    assert added(Usage(5, 1), -9, 1, WEEK_US) == Usage(0, 1)


@given(st.dictionaries(st.text(), st.builds(Usage, parts, spans), max_size=5), half_lives, spans)
def test_who_used_less_does_not_depend_on_the_landmark(
    usages: dict[str, Usage], half: int, later: int
) -> None:
    told = at_landmark(usages, half)
    moved = {name: added(usage, 0, later, half) for name, usage in usages.items()}
    elsewhere = at_landmark(moved, half)
    for one in usages:
        for other in usages:
            # Rounding may make two alike, never turn them round.
            if told[one] < told[other]:
                assert elsewhere[one] <= elsewhere[other]


def test_usages_are_told_at_the_latest_instant_in_parts_of_capacity() -> None:
    usages = {"ann": Usage(ALL, 0), "bob": Usage(ALL // 4, WEEK_US), "cid": Usage(1, WEEK_US)}
    half = 1 << CAPACITY_BITS - 1
    assert at_landmark(usages, WEEK_US) == {"ann": half, "bob": half // 2, "cid": 0}
    assert at_landmark({}, WEEK_US) == {}
