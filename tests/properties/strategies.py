"""Random but valid states of the core: fleets, quota trees, waiting jobs.

Hypothesis draws a seed and everything follows from it. So states are varied, most of them start
some gangs (a property must not be proved on empty plans), and every one can be had again.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np
from hypothesis import strategies as st

from gateway.core.admission import Snapshot, Usage
from gateway.core.devices.fleet import DeviceSlot, Fleet, MachineType
from gateway.core.devices.rows import DeviceRow, NodeRow
from gateway.core.jobs.columns import WaitingJobs
from gateway.core.jobs.request import PodSetRequest, RequestClass
from gateway.core.queues.definitions import Cohort, Flavor, Queue, Quota
from gateway.core.resources import amounts
from gateway.core.vocabulary import UNLIMITED, DeviceHealth, DeviceKind, PairRule, QueueState
from tests.builders import a_device, a_fleet, a_node, waiting_jobs

Item = TypeVar("Item")
Tree = tuple[tuple[Queue, ...], tuple[Cohort, ...]]

FLAVORS = (
    Flavor(name="large", node_labels=(("size", "l"),)),
    Flavor(name="small", node_labels=(("size", "s"),)),
)
LABELS = [*(flavor.node_labels for flavor in FLAVORS * 3), ()]
seeds = st.integers(0, 2**32 - 1)


class Dice:
    """Draws from a seed."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def pick(self, options: Sequence[Item]) -> Item:
        return options[int(self.rng.integers(len(options)))]

    def number(self, low: int, high: int) -> int:
        return int(self.rng.integers(low, high + 1))

    def happens(self, percent: int) -> bool:
        return self.number(1, 100) <= percent


def a_random_node(dice: Dice, node_id: int) -> tuple[NodeRow, list[DeviceRow]]:
    """Give one node in some state of use."""
    total = {"cpu": dice.pick([64000, 64000, 4000]), "memory": 2**36, "pods": dice.pick([20, 3])}
    free = {**total, "cpu": dice.pick([total["cpu"], total["cpu"], 3000, 1500])}
    row = a_node(
        node_id,
        health=DeviceHealth.CORDONED if dice.happens(10) else DeviceHealth.HEALTHY,
        total=total,
        free=free,
        labels=dice.pick(LABELS),
    )
    size, busy = dice.pick([8, 8, 8, 4, 0]), dice.pick([0, 0, 20, 60])
    devices = [
        a_device(node_id, kind, ordinal, units_free=0 if dice.happens(busy) else 100)
        for kind in DeviceKind
        for ordinal in range(size)
    ]
    return row, devices


def a_random_fleet(dice: Dice, count: int) -> Fleet:
    """Give a small fleet."""
    drawn = [a_random_node(dice, node_id) for node_id in range(count)]
    devices = [device for _, each in drawn for device in each]
    return a_fleet([row for row, _ in drawn], devices, complete=dice.happens(80))


def a_random_pod_set(dice: Dice, name: str, count: int) -> PodSetRequest:
    """Give pods alike, with some pair rule."""
    asks = {
        "cpu": dice.pick([500, 1000, 3000]),
        "gpu": dice.pick([0, 1, 1, 1, 2, 2, 4, 8]),
        "rdma": dice.pick([0, 0, 0, 1, 1, 2, 4]),
    }
    return PodSetRequest(
        name=name,
        count=count,
        per_pod=amounts(asks),
        pair=dice.pick(list(PairRule)),
        is_pair_required=dice.happens(50),
        host_ports=(2222,) if dice.happens(15) else (),
    )


def a_random_gang(dice: Dice) -> RequestClass:
    """Give Workers, often with a Master."""
    workers = a_random_pod_set(dice, "Worker", dice.pick([1, 1, 2, 3, 4]))
    if dice.happens(50):
        return RequestClass(pod_sets=(workers,))
    return RequestClass(pod_sets=(a_random_pod_set(dice, "Master", 1), workers))


def random_quotas(dice: Dice) -> tuple[Quota, ...]:
    """Give some rows; a lending limit is never above the nominal quota."""
    rows = []
    for flavor in FLAVORS:
        for resource, scale in (("gpu", 1), ("cpu", 1000)):
            nominal = dice.pick([32, 16, 8, 4, 0]) * scale
            row = Quota(
                flavor=flavor.name,
                resource=resource,
                nominal=nominal,
                borrowing_limit=dice.pick([UNLIMITED, UNLIMITED, 8 * scale, 2 * scale, 0]),
                lending_limit=dice.pick([UNLIMITED, UNLIMITED, nominal, nominal // 2, 0]),
            )
            if dice.happens(30):
                rows.append(row)
    return tuple(rows)


def a_random_tree(dice: Dice, queue_count: int, cohort_count: int) -> Tree:
    """Give queues under cohorts of any shape."""
    names: list[str | None] = [None]
    cohorts = []
    for index in range(cohort_count):
        cohorts.append(
            Cohort(
                name=f"cohort-{index}",
                parent=dice.pick(names),
                weight=dice.number(0, 3),
                quotas=random_quotas(dice),
            )
        )
        names.append(f"cohort-{index}")
    queues = [
        Queue(
            name=f"queue-{index}",
            cohort=dice.pick(names),
            weight=dice.number(0, 3),
            state=QueueState.PAUSED if dice.happens(10) else QueueState.OPEN,
            quotas=random_quotas(dice),
            flavors=dice.pick([(), (), ("small",), ("large", "small")]),
        )
        for index in range(queue_count)
    ]
    return tuple(queues), tuple(cohorts)


def a_random_waiting_list(dice: Dice, queue_count: int, count: int) -> WaitingJobs:
    """Give jobs of a few classes."""
    classes = tuple(dict.fromkeys(a_random_gang(dice) for _ in range(4)))

    def column(low: int, high: int) -> list[int]:
        return [dice.number(low, high) for _ in range(count)]

    return waiting_jobs(
        classes,
        version=column(1, 9),
        queue=column(0, queue_count - 1),
        request_class=column(0, len(classes) - 1),
        priority=column(-2, 2),
        submitted_us=column(0, 3),
    )


@st.composite
def snapshots(draw: st.DrawFn) -> Snapshot:
    """Give a whole state with some use."""
    dice = Dice(draw(seeds))
    queues, cohorts = a_random_tree(dice, dice.number(1, 4), dice.number(0, 3))
    used = {
        (dice.pick(queues).name, dice.pick(FLAVORS).name, dice.pick(["gpu", "cpu"])): amount
        for amount in range(dice.number(0, 4))
    }
    return Snapshot(
        serial=dice.number(0, 9),
        queues=queues,
        cohorts=cohorts,
        flavors=FLAVORS,
        usage=tuple(
            Usage(queue=queue, flavor=flavor, resource=resource, amount=amount)
            for (queue, flavor, resource), amount in sorted(used.items())
        ),
        waiting=a_random_waiting_list(dice, len(queues), dice.number(1, 12)),
        fleet=a_random_fleet(dice, dice.number(1, 5)),
    )


@st.composite
def trees(draw: st.DrawFn) -> Tree:
    """Give a quota tree alone."""
    dice = Dice(draw(seeds))
    return a_random_tree(dice, dice.number(1, 4), dice.number(0, 3))


@st.composite
def machines(draw: st.DrawFn, most: int = 4) -> MachineType:
    """Give a small machine of any topology, even a strange one."""
    dice = Dice(draw(seeds))

    def slots(count: int) -> tuple[DeviceSlot, ...]:
        places = [(s, s // 2) for s in range(3)] + [(s, -1) for s in range(3)]
        places += [(-1, 0), (-1, 1), (-1, -1)]
        drawn = [dice.pick(places) for _ in range(count)]
        return tuple(
            DeviceSlot(ordinal=i, switch=s, numa=n, nvlink_group=dice.number(-1, 1))
            for i, (s, n) in enumerate(drawn)
        )

    return MachineType(
        name="any", gpus=slots(dice.number(0, most)), nics=slots(dice.number(0, most))
    )


def shuffled(snapshot: Snapshot, order: list[int]) -> Snapshot:
    """Give the same state with its jobs in another order and its definitions reversed."""
    waiting = snapshot.waiting.take(np.array(order, dtype=np.int64))
    last = len(snapshot.queues) - 1
    return replace(
        snapshot,
        queues=snapshot.queues[::-1],
        cohorts=snapshot.cohorts[::-1],
        flavors=snapshot.flavors[::-1],
        usage=snapshot.usage[::-1],
        waiting=replace(waiting, queue=(last - waiting.queue).astype(np.int32)),
    )
