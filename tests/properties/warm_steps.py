"""What else may happen to rows between two readings, beside what happens to a world."""

from collections.abc import Callable

from gateway.core.vocabulary import DeviceHealth
from tests.properties import engine_steps
from tests.properties.engine_definitions import HOUR_US, USERS
from tests.properties.strategies import Dice
from tests.properties.warm_rows import Rows

RowStep = Callable[[Rows, Dice], None]


def hold(rows: Rows, dice: Dice) -> None:
    """A user holds a job back."""
    if rows.world.waiting:
        job_id = dice.pick(list(rows.world.waiting))
        rows.held[job_id] = rows.world.waiting.pop(job_id)


def release(rows: Rows, dice: Dice) -> None:
    """A user lets a held job wait again."""
    if rows.held:
        job_id = dice.pick(list(rows.held))
        rows.world.waiting[job_id] = rows.held.pop(job_id)


def reprioritise(rows: Rows, dice: Dice) -> None:
    """A waiting job gets another place in its line."""
    if rows.world.waiting:
        job_id = dice.pick(list(rows.world.waiting))
        job = rows.world.waiting[job_id]
        rows.world.waiting[job_id] = dice.pick(
            [
                job._replace(priority=dice.number(-3, 3)),
                job._replace(rank=dice.number(0, 2)),
                job._replace(user=dice.pick(USERS)),
                job._replace(eligible_us=rows.world.now_us + dice.number(0, 2) * HOUR_US // 2),
            ]
        )


def requeue(rows: Rows, dice: Dice) -> None:
    """A started gang gives everything back and waits again, with its old instant of submission."""
    if rows.world.running:
        job_id = dice.pick(list(rows.world.running))
        job = rows.world.running[job_id].job
        rows.world.running.pop(job_id)
        rows.world.waiting[job_id] = job


def cordon(rows: Rows, dice: Dice) -> None:
    """A node is cordoned, or not any more."""
    if rows.world.nodes:
        node_id = dice.pick(list(rows.world.nodes))
        health = dice.pick([DeviceHealth.CORDONED, DeviceHealth.HEALTHY])
        rows.world.nodes[node_id] = rows.world.nodes[node_id]._replace(health=health)


def look_for_nodes(rows: Rows, dice: Dice) -> None:
    """The inventory is complete now, or is not sure any more."""
    rows.world.is_complete = dice.happens(70)


def in_world(step: engine_steps.Step) -> RowStep:
    """Give a step of a world as one of its rows."""
    return lambda rows, dice: step(rows.world, dice)


ROW_STEPS: tuple[RowStep, ...] = (
    *map(in_world, engine_steps.STEPS),
    hold,
    release,
    release,
    reprioritise,
    reprioritise,
    requeue,
    cordon,
    look_for_nodes,
)
