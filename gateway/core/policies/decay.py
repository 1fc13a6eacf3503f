"""Usage that fades: the part of the fleet that a user held lately, halved with each half-life.

Usage is an average over the past in which an instant weighs half as much for each half-life it lies
back, so whoever always held the same part has that part as usage. A figure belongs to an instant
and is only changed when something happens; figures are compared at one landmark, and how two of
them compare does not depend on which. Nothing here knows a clock or who used what.
"""

import math
from collections.abc import Mapping
from typing import Final, NamedTuple

CAPACITY_BITS: Final = 20
"""Usages are compared in 1/2^20 of what there is."""
# A GPU of ten thousand, held for a minute of a week's half-life, would be lost in CAPACITY_BITS.
STORED_BITS: Final = 40
"""They are kept in 1/2^40, so that many small ones add up."""


class Usage(NamedTuple):
    """A decayed usage in 1/2^40 of capacity, as of an instant in microseconds since the epoch."""

    amount: int
    at_us: int


def part_of(amounts: Mapping[str, int], capacity: Mapping[str, int]) -> int:
    """Give the largest part of any resource that amounts take, in 1/2^40.

    Resources of which nothing is there are left out, as are those that nobody counts; more than
    there is counts as all of it.
    """
    parts = (
        (min(amount, capacity[name]) << STORED_BITS) // capacity[name]
        for name, amount in amounts.items()
        if capacity.get(name, 0) > 0
    )
    return max(parts, default=0)


def faded(amount: int, elapsed_us: int, half_life_us: int) -> int:
    """Give what is left of a usage after some time."""
    return round(amount * math.exp2(-elapsed_us / half_life_us))


def accrued(part: int, held_us: int, half_life_us: int) -> int:
    """Give the usage of one who just held a part for so long and nothing before."""
    # expm1 keeps the digits that 1 - 2^-x loses where x is small, and most gangs are short.
    return round(part * -math.expm1(-math.log(2) * held_us / half_life_us))


def added(usage: Usage, amount: int, at_us: int, half_life_us: int) -> Usage:
    """Give a usage with more of it at an instant; a negative amount takes back, never below 0.

    The later of both instants counts: clocks of two leaders may differ, and a usage of the future
    must not be faded backwards, which would let it grow.
    """
    latest_us = max(usage.at_us, at_us)
    known = faded(usage.amount, latest_us - usage.at_us, half_life_us)
    more = faded(amount, latest_us - at_us, half_life_us)
    return Usage(max(0, known + more), latest_us)


def at_landmark(usages: Mapping[str, Usage], half_life_us: int) -> dict[str, int]:
    """Bring usages to the latest of their instants, in 1/2^20 of capacity, rounded."""
    landmark_us = max((usage.at_us for usage in usages.values()), default=0)
    shift = STORED_BITS - CAPACITY_BITS
    return {
        name: (faded(usage.amount, landmark_us - usage.at_us, half_life_us) + (1 << shift - 1))
        >> shift
        for name, usage in usages.items()
    }
