"""What a job's place in its queue is made of, in the numbers of the queue's order policy.

Read from the keys that the policy itself gave, so that what is told is what decides. A policy that
is not known here tells nothing but how long a job has waited.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from gateway.core.policies.ordering import HOUR_US, SECOND_US
from gateway.core.vocabulary import OrderPolicy

_NO_DEADLINE = 2
"""Stage of the deadline policy for jobs without one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """The numbers behind a place; None where the queue's policy does not ask."""

    waited_seconds: float
    """Since it was submitted, or since it became eligible."""
    age: float | None = None
    """What waiting has added to the priority."""
    effective: float | None = None
    """Priority with the age: higher comes first."""
    user_usage: float | None = None
    """Decayed usage of the submitting user as part of what there is: lower comes first."""
    slack_seconds: float | None = None
    """Time until the latest start that still makes the deadline; negative when it has passed."""
    remaining_gpu_seconds: int | None = None
    """Expected run time by GPUs, less a GPU-second for each second waited."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """One job as its order policy placed it."""

    priority: int
    stage: int
    key: int
    """As it is at `now_us`; lower comes first."""
    now_us: int


def terms_of(policy: str, job: Standing, known: Terms) -> Terms:
    """Add what a policy looks at to what is known of a job anyway."""
    add = _BY_POLICY.get(policy)
    return known if add is None else add(job, known)


def _number(job: Standing, known: Terms) -> Terms:
    # Decided in whole microsecond-points, told as a double: nothing is compared by it.
    effective = -job.key / HOUR_US
    return replace(known, effective=effective, age=effective - job.priority)


def _slack(job: Standing, known: Terms) -> Terms:
    if job.stage == _NO_DEADLINE:
        return known
    return replace(known, slack_seconds=(job.key - job.now_us) / SECOND_US)


def _work(job: Standing, known: Terms) -> Terms:
    # Jobs of unknown length stand in a stage of their own, by age alone.
    if job.stage:
        return known
    return replace(known, remaining_gpu_seconds=(job.key - job.now_us) // SECOND_US)


_BY_POLICY: dict[str, Callable[[Standing, Terms], Terms]] = {
    OrderPolicy.PRIORITY: _number,
    OrderPolicy.FAIR_USERS: _number,
    OrderPolicy.DEADLINE: _slack,
    OrderPolicy.SHORTEST: _work,
}
