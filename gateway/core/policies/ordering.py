"""Order policies: where a job stands in the line of its queue.

A policy gives each job a stage and a key. Inside a stage the order by key does not change with
time, so a line is sorted once however long it waits; between stages only their heads are compared.
A job may move to another stage at an instant that the policy names. Lower comes first everywhere;
equal keys go by the instant of submission, then by job.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from gateway.core.jobs.columns import Int64
from gateway.core.queues.definitions import Ageing
from gateway.core.vocabulary import UNLIMITED, OrderPolicy

SECOND_US: Final = 1_000_000
HOUR_US: Final = 3_600 * SECOND_US
"""A priority is multiplied by this, so that ageing by the hour stays exact in microseconds."""
MOST_PER_HOUR: Final = 1_000
"""Ageing above this would overflow 64 bits for instants of this century."""


class Standing(NamedTuple):
    """What the order of jobs may depend on, as columns of equal length."""

    priority: Int64
    since_us: Int64
    """When it became eligible; waiting counts from here."""
    deadline_us: Int64
    expected_seconds: Int64
    gpus: Int64
    """Of the whole gang."""


class Places(NamedTuple):
    """Where jobs stand, as columns; `until_us` is when a job has to be placed again."""

    stage: Int64
    key: Int64
    until_us: Int64


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A part of a line that stays sorted; stages of lower rank come wholly before others."""

    rank: int = 0
    ages: bool = False
    """Whether its keys fall by the queue's ageing while time passes, all by the same amount."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ordering:
    """An order policy: a function for the places, and what its stages mean."""

    place: Callable[[Standing, Ageing, int], Places]
    stages: tuple[Stage, ...]
    by_user: bool = False
    """Whether the submitting user's decayed usage comes before everything else."""


def priority(jobs: Standing, ageing: Ageing, now_us: int) -> Places:
    """Higher number first; waiting raises the number until the cap is reached.

    Two jobs that both still age keep their order, so do two that are at the cap.
    """
    number = jobs.priority * HOUR_US
    if not ageing.per_hour:
        return Places(np.zeros_like(number), -number, np.full_like(number, UNLIMITED))
    # Rounded up: at this instant the cap is reached for sure.
    # since + ceil(cap * hour / per_hour): -(-a // b) is division rounded up.
    until = jobs.since_us - (-ageing.cap * HOUR_US // ageing.per_hour)
    at_cap = until <= now_us
    key = np.where(
        at_cap, -(number + ageing.cap * HOUR_US), ageing.per_hour * jobs.since_us - number
    )
    return Places(at_cap.astype(np.int64), key, np.where(at_cap, UNLIMITED, until))


def deadline(jobs: Standing, ageing: Ageing, now_us: int) -> Places:
    """The latest possible start first; then those that passed it; then those without a deadline."""
    del ageing
    # Of an unknown length it must start before its deadline, which is all that can be said.
    latest = jobs.deadline_us - jobs.expected_seconds * SECOND_US
    has_none = jobs.deadline_us == 0
    is_late = latest < now_us
    stage = np.where(has_none, 2, np.where(is_late, 1, 0))
    # At its latest start it can still make it; a microsecond later it cannot.
    until = np.where(stage == 0, latest + 1, UNLIMITED)
    return Places(stage, np.where(has_none, 0, latest), until)


def shortest(jobs: Standing, ageing: Ageing, now_us: int) -> Places:
    """Least expected GPU-time first, less a GPU-second for each second waited; unknown ones last.

    All keys fall by the same amount while time passes, so it need not be subtracted.
    """
    del ageing, now_us
    is_unknown = jobs.expected_seconds == 0
    # In floats first: the product of two large numbers must not wrap round.
    seconds = np.minimum(jobs.expected_seconds * jobs.gpus.astype(np.float64), 2**40)
    work = seconds.astype(np.int64) * SECOND_US
    key = np.where(is_unknown, 0, work) + jobs.since_us
    return Places(is_unknown.astype(np.int64), key, np.full_like(key, UNLIMITED))


_BY_PRIORITY: Final = (Stage(ages=True), Stage())

ORDERING: dict[str, Ordering] = {
    OrderPolicy.PRIORITY: Ordering(place=priority, stages=_BY_PRIORITY),
    OrderPolicy.FAIR_USERS: Ordering(place=priority, stages=_BY_PRIORITY, by_user=True),
    OrderPolicy.DEADLINE: Ordering(place=deadline, stages=(Stage(), Stage(rank=1), Stage(rank=2))),
    OrderPolicy.SHORTEST: Ordering(place=shortest, stages=(Stage(), Stage(rank=1))),
}
