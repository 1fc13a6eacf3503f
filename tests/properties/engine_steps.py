"""What may happen to a world between two cycles: each step takes dice and changes a few rows."""

from collections.abc import Callable
from dataclasses import replace

from gateway.core.admission.types import Span
from gateway.core.vocabulary import DeviceHealth, QueueState
from tests.properties.engine_definitions import (
    HOUR_US,
    SECOND_US,
    USERS,
    a_budget,
    a_change,
    a_cohort,
    a_gang,
    a_queue,
    some_caps,
    some_quotas,
)
from tests.properties.engine_world import NodeFacts, Waiting, World
from tests.properties.strategies import Dice

Step = Callable[[World, Dice], None]
QUEUES = ("qa", "qb", "qc", "qd")
COHORTS = ("ca", "cb", "cc")
LABELS = (
    (("rack", "r1"), ("size", "l")),
    (("rack", "r1"), ("size", "l")),
    (("rack", "r2"), ("size", "l")),
    (("rack", "r1"), ("size", "s")),
    (("rack", "r3"), ("size", "s")),
    (("size", "s"),),
    (),
)
CLOCK_STEPS_US = (1, SECOND_US, HOUR_US // 2, HOUR_US, 5 * HOUR_US)


def a_world(seed: int) -> World:
    """Give a world with definitions, nodes and some jobs."""
    dice, world = Dice(seed), World()
    for name in COHORTS[: dice.number(0, 3)]:
        world.cohorts[name] = a_cohort(dice, name, list(world.cohorts), world.now_us)
    for name in QUEUES[: dice.number(1, 4)]:
        world.queues[name] = a_queue(dice, name, list(world.cohorts), world.now_us)
    for _ in range(dice.number(2, 5)):
        add_node(world, dice)
    for _ in range(dice.number(2, 10)):
        submit(world, dice)
    world.is_complete = dice.happens(80)
    use_lately(world, dice)
    return world


def submit(world: World, dice: Dice) -> None:
    """A user submits a job, often one like another that waits."""
    gangs = [job.gang for job in world.waiting.values()]
    world.waiting[world.next_id] = Waiting(
        queue=dice.pick(list(world.queues)),
        gang=dice.pick(gangs) if gangs and dice.happens(60) else a_gang(dice),
        user=dice.pick(USERS),
        priority=dice.number(-2, 2),
        rank=dice.pick([0, 0, 0, 1, 2]),
        submitted_us=world.now_us - dice.pick([0, 1, HOUR_US, HOUR_US, 3 * HOUR_US]),
        eligible_us=dice.pick([*[0] * 6, world.now_us - HOUR_US, world.now_us + HOUR_US // 2]),
        deadline_us=dice.pick([0, world.now_us + dice.pick(CLOCK_STEPS_US)]),
        expected_seconds=dice.pick([0, 1, 1800, 3600]),
    )
    world.next_id += 1


def finish(world: World, dice: Dice) -> None:
    """A gang ends; what it held counts in its queue's budget."""
    if world.running:
        gang = world.running.pop(dice.pick(list(world.running)))
        world.ended.append(
            Span(
                queue=gang.admit.queue,
                gpus=gang.gpus,
                since_us=gang.since_us,
                until_us=world.now_us,
            )
        )


def cancel(world: World, dice: Dice) -> None:
    """A user takes a waiting job back."""
    if world.waiting:
        del world.waiting[dice.pick(list(world.waiting))]


def add_node(world: World, dice: Dice) -> None:
    """A node joins."""
    world.nodes[max(world.nodes, default=0) + 1] = NodeFacts(
        labels=dice.pick(LABELS),
        is_tainted=dice.happens(15),
        health=DeviceHealth.CORDONED if dice.happens(5) else DeviceHealth.HEALTHY,
        cpu=dice.pick([64_000, 64_000, 4000]),
        pods=dice.pick([20, 20, 3]),
        devices=dice.pick([8, 8, 4, 0]),
        foreign=dice.pick([0, 0, 0, 0b1, 0b110]),
    )


def lose_node(world: World, dice: Dice) -> None:
    """A node is gone, with what ran on it still counted until it ends."""
    if world.nodes:
        del world.nodes[dice.pick(list(world.nodes))]


def change_node(world: World, dice: Dice) -> None:
    """A node gets other labels, a taint, another health, or loses one."""
    if not world.nodes:
        return
    node_id = dice.pick(list(world.nodes))
    facts = world.nodes[node_id]
    world.nodes[node_id] = dice.pick(
        [
            facts._replace(labels=dice.pick(LABELS)),
            facts._replace(is_tainted=not facts.is_tainted),
            facts._replace(health=dice.pick([DeviceHealth.HEALTHY, DeviceHealth.UNHEALTHY])),
            facts._replace(foreign=dice.pick([0, 0b1, 0b1111])),
        ]
    )


def edit_queue(world: World, dice: Dice) -> None:
    """An admin sets one thing of a queue."""
    queue = world.queues[dice.pick(list(world.queues))]
    other = a_queue(dice, queue.name, list(world.cohorts), world.now_us)
    world.queues[queue.name] = dice.pick(
        [
            other,
            replace(queue, cohort=other.cohort),
            replace(queue, quotas=some_quotas(dice)),
            replace(queue, caps=some_caps(dice)),
            replace(queue, budget=a_budget(dice)),
            replace(queue, weight=other.weight, order=other.order, blocking=other.blocking),
            replace(queue, changes=(a_change(dice, world.now_us),)),
        ]
    )


def pause_or_open(world: World, dice: Dice) -> None:
    """An admin opens a paused queue, or pauses another now and then."""
    paused = [name for name, each in world.queues.items() if each.state is QueueState.PAUSED]
    if not paused and dice.happens(60):
        return
    queue = world.queues[dice.pick(paused or list(world.queues))]
    other = QueueState.OPEN if queue.state is QueueState.PAUSED else QueueState.PAUSED
    world.queues[queue.name] = replace(queue, state=other)


def edit_tree(world: World, dice: Dice) -> None:
    """A cohort gets other rows or another parent; a queue is made or deleted."""
    if world.cohorts and dice.happens(70):
        name = dice.pick(list(world.cohorts))
        # Only those named before it may be above it, so no circle can come up.
        above = [other for other in world.cohorts if other < name]
        world.cohorts[name] = a_cohort(dice, name, above, world.now_us)
        return
    name = dice.pick(QUEUES)
    is_empty = all(job.queue != name for job in world.waiting.values())
    if name not in world.queues:
        world.queues[name] = a_queue(dice, name, list(world.cohorts), world.now_us)
    elif is_empty and len(world.queues) > 1:
        del world.queues[name]


def use_lately(world: World, dice: Dice) -> None:
    """Users' decayed usages are written anew."""
    world.used_lately = {
        (queue, user): dice.number(0, 3)
        for queue in world.queues
        for user in USERS
        if dice.happens(60)
    }


def tick(world: World, dice: Dice) -> None:
    """Time passes."""
    world.now_us += dice.pick(CLOCK_STEPS_US)


def set_back(world: World, dice: Dice) -> None:
    """The clock is set back: what was submitted or freed just now lies in the future."""
    world.now_us -= dice.pick(CLOCK_STEPS_US)


STEPS: tuple[Step, ...] = (
    submit,
    submit,
    submit,
    finish,
    finish,
    cancel,
    add_node,
    lose_node,
    change_node,
    edit_queue,
    pause_or_open,
    edit_tree,
    use_lately,
    tick,
    tick,
    set_back,
)
"""Everything that may happen, the frequent more than once."""
