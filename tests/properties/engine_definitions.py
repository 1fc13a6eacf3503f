"""Random definitions and gangs for the engine's worlds.

Amounts are small and alike, so that queues, users and nodes run out of something most of the time.
"""

from collections.abc import Sequence
from dataclasses import replace

from gateway.core.jobs.request import PodSetRequest, RequestClass
from gateway.core.queues.definitions import (
    Ageing,
    Budget,
    Caps,
    Cohort,
    DatedChange,
    Flavor,
    Queue,
    Quota,
)
from gateway.core.resources import amounts
from gateway.core.resources.node_rules import Toleration
from gateway.core.vocabulary import (
    UNLIMITED,
    Blocking,
    OrderPolicy,
    PairRule,
    QueueState,
    WhenCanBorrow,
)
from tests.properties.strategies import Dice

SECOND_US = 1_000_000
HOUR_US = 3600 * SECOND_US
USERS = ("ann", "bob", "cid")
FLAVORS = (
    Flavor(name="large", node_labels=(("size", "l"),)),
    Flavor(name="small", node_labels=(("size", "s"),)),
)
TOLERANT = Toleration(key="gpu", operator="Exists")
PAIRS = (("large", "gpu"), ("large", "cpu"), ("small", "gpu"), ("small", "cpu"))


def scale_of(resource: str) -> int:
    """Give the unit in which amounts of a resource are drawn."""
    return 1000 if resource == "cpu" else 1


def a_quota(dice: Dice, pair: tuple[str, str]) -> Quota:
    """Give a row; a lending limit is never above the nominal quota."""
    scale = scale_of(pair[1])
    nominal = dice.pick([32, 16, 16, 8, 4, 0]) * scale
    return Quota(
        flavor=pair[0],
        resource=pair[1],
        nominal=nominal,
        borrowing_limit=dice.pick([UNLIMITED, UNLIMITED, UNLIMITED, 8 * scale, 2 * scale]),
        lending_limit=dice.pick([UNLIMITED, UNLIMITED, nominal, nominal // 2, 0]),
    )


def some_quotas(dice: Dice) -> tuple[Quota, ...]:
    """Give rows of some pairs."""
    return tuple(a_quota(dice, pair) for pair in PAIRS if dice.happens(30))


def a_change(dice: Dice, now_us: int) -> DatedChange:
    """Give a change around the present."""
    flavor, resource = dice.pick(PAIRS)
    scale = scale_of(resource)
    return DatedChange(
        at_us=now_us + dice.pick([-1, 0, 1, HOUR_US // 2, HOUR_US, 3 * HOUR_US]),
        flavor=flavor,
        resource=resource,
        nominal=dice.pick([None, 0, 4 * scale, 16 * scale]),
        borrowing_limit=dice.pick([None, None, 0, 4 * scale, UNLIMITED]),
    )


def some_changes(dice: Dice, now_us: int) -> tuple[DatedChange, ...]:
    """Give no change mostly, else a few in order of time."""
    count = dice.pick([0, 0, 0, 1, 2])
    return tuple(sorted((a_change(dice, now_us) for _ in range(count)), key=lambda c: c.at_us))


def some_caps(dice: Dice) -> Caps:
    """Give no cap mostly."""
    if dice.happens(70):
        return Caps()
    return Caps(
        running_jobs=dice.pick([UNLIMITED, UNLIMITED, 2, 4]),
        gpus_per_job=dice.pick([UNLIMITED, UNLIMITED, 4, 8]),
        user_running_jobs=dice.pick([UNLIMITED, UNLIMITED, 1, 2]),
        user_gpus=dice.pick([UNLIMITED, UNLIMITED, 4, 8]),
    )


def a_budget(dice: Dice) -> Budget | None:
    """Give no budget mostly."""
    if dice.happens(80):
        return None
    return Budget(
        gpu_seconds=dice.pick([0, 1800, 7200, 36_000]),
        window_seconds=dice.pick([3600, 7200, 86_400]),
        starts_us=dice.pick([0, HOUR_US // 3]),
    )


def a_queue(dice: Dice, name: str, cohorts: Sequence[str], now_us: int) -> Queue:
    """Give a queue under one of these cohorts or at the top."""
    return Queue(
        name=name,
        cohort=dice.pick([None, *cohorts, *cohorts]),
        weight=dice.pick([0, 1, 1, 1, 2, 3]),
        state=QueueState.PAUSED if dice.happens(5) else QueueState.OPEN,
        quotas=some_quotas(dice),
        flavors=dice.pick([(), (), ("small",), ("large", "small"), ("small", "large")]),
        changes=some_changes(dice, now_us),
        order=dice.pick(list(OrderPolicy)),
        ageing=dice.pick([Ageing(), Ageing(per_hour=1, cap=3), Ageing(per_hour=7, cap=2)]),
        blocking=dice.pick(list(Blocking)),
        when_can_borrow=dice.pick(list(WhenCanBorrow)),
        caps=some_caps(dice),
        budget=a_budget(dice),
    )


def a_cohort(dice: Dice, name: str, parents: Sequence[str], now_us: int) -> Cohort:
    """Give a cohort under one of these or at the top."""
    return Cohort(
        name=name,
        parent=dice.pick([None, *parents]),
        weight=dice.pick([0, 1, 1, 2]),
        quotas=some_quotas(dice),
        changes=some_changes(dice, now_us),
    )


def a_gang(dice: Dice) -> RequestClass:
    """Give Workers, often with a Master."""
    workers = a_pod_set(dice, "Worker", dice.pick([1, 1, 1, 2, 2, 4]))
    sets: tuple[PodSetRequest, ...] = (
        (workers,) if dice.happens(60) else (a_pod_set(dice, "Master", 1), workers)
    )
    pods = sum(each.count for each in sets)
    if dice.happens(15):
        size = dice.pick([each for each in (1, 2, 4, pods) if pods % each == 0])
        sets = tuple(replace(each, slices=(("rack", size),)) for each in sets)
    return RequestClass(pod_sets=sets)


def a_pod_set(dice: Dice, name: str, count: int) -> PodSetRequest:
    """Give pods alike, with some pair rule, level and toleration."""
    asks = {
        "cpu": dice.pick([1000, 1000, 3000]),
        "gpu": dice.pick([0, 1, 1, 1, 2, 2, 4, 8]),
        "rdma": dice.pick([0, 0, 0, 1, 2]),
    }
    return PodSetRequest(
        name=name,
        count=count,
        per_pod=amounts(asks),
        pair=dice.pick(list(PairRule)),
        is_pair_required=dice.happens(60),
        level="rack" if dice.happens(20) else "",
        is_level_required=dice.happens(50),
        tolerations=(TOLERANT,) if dice.happens(20) else (),
    )
