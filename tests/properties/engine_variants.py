"""The same world told otherwise, or with less in it, for properties that compare two plans."""

from dataclasses import replace
from typing import TypeVar

from gateway.core.admission import Charge, Snapshot
from gateway.core.jobs.request import PodSetRequest, RequestClass
from gateway.core.queues.definitions import Budget, Caps, Cohort, DatedChange, Queue, Quota
from gateway.core.resources import amounts
from gateway.core.vocabulary import UNLIMITED, Blocking, DeviceHealth
from tests.properties.engine_steps import lose_node
from tests.properties.engine_world import Running, World
from tests.properties.strategies import Dice

Key = TypeVar("Key")
Value = TypeVar("Value")
Owner = TypeVar("Owner", Queue, Cohort)


def reordered(world: World, dice: Dice) -> Snapshot:
    """Give the same state with everything that has no order of its own in another order."""
    other = replace(
        world,
        waiting=_shuffled(world.waiting, dice),
        running=_shuffled(world.running, dice),
        queues=_shuffled(world.queues, dice),
        cohorts=_shuffled(world.cohorts, dice),
        nodes=_shuffled(world.nodes, dice),
        ended=world.ended[::-1],
    )
    snapshot = other.snapshot()
    return replace(
        snapshot,
        flavors=snapshot.flavors[::-1],
        usage=snapshot.usage[::-1],
        held=snapshot.held[::-1],
        user_usage=snapshot.user_usage[::-1],
    )


def _shuffled(rows: dict[Key, Value], dice: Dice) -> dict[Key, Value]:
    keys = list(rows)
    return {keys[at]: rows[keys[at]] for at in dice.rng.permutation(len(keys)).tolist()}


def with_cpu_times(world: World, factor: int) -> World:
    """Give the world with every amount of CPU multiplied; devices cannot be."""
    return replace(
        world,
        nodes={name: facts._replace(cpu=facts.cpu * factor) for name, facts in world.nodes.items()},
        queues={name: _quotas_times(each, factor) for name, each in world.queues.items()},
        cohorts={name: _quotas_times(each, factor) for name, each in world.cohorts.items()},
        waiting={
            job_id: job._replace(gang=_gang_times(job.gang, factor))
            for job_id, job in world.waiting.items()
        },
        running={job_id: _running_times(gang, factor) for job_id, gang in world.running.items()},
    )


def _quotas_times(owner: Owner, factor: int) -> Owner:
    return replace(
        owner,
        quotas=tuple(_row_times(each, factor) for each in owner.quotas),
        changes=tuple(_change_times(each, factor) for each in owner.changes),
    )


def _row_times(row: Quota, factor: int) -> Quota:
    if row.resource != "cpu":
        return row
    return replace(
        row,
        nominal=row.nominal * factor,
        borrowing_limit=_limit_times(row.borrowing_limit, factor),
        lending_limit=_limit_times(row.lending_limit, factor),
    )


def _change_times(change: DatedChange, factor: int) -> DatedChange:
    if change.resource != "cpu":
        return change
    nominal, limit = change.nominal, change.borrowing_limit
    return replace(
        change,
        nominal=None if nominal is None else nominal * factor,
        borrowing_limit=None if limit is None else _limit_times(limit, factor),
    )


def _limit_times(limit: int, factor: int) -> int:
    return limit if limit >= UNLIMITED else limit * factor


def _gang_times(gang: RequestClass, factor: int) -> RequestClass:
    return RequestClass(pod_sets=tuple(_pods_times(each, factor) for each in gang.pod_sets))


def _pods_times(pod_set: PodSetRequest, factor: int) -> PodSetRequest:
    asks = dict(pod_set.per_pod)
    return replace(pod_set, per_pod=amounts({**asks, "cpu": asks["cpu"] * factor}))


def _running_times(gang: Running, factor: int) -> Running:
    charges = tuple(
        Charge(
            flavor=each.flavor,
            resource=each.resource,
            amount=each.amount * (factor if each.resource == "cpu" else 1),
        )
        for each in gang.admit.charges
    )
    job = gang.job._replace(gang=_gang_times(gang.job.gang, factor))
    return gang._replace(job=job, admit=replace(gang.admit, charges=charges))


def with_weights_times(world: World, factor: int) -> World:
    """Give the world with all weights multiplied."""
    return replace(
        world,
        queues={name: replace(q, weight=q.weight * factor) for name, q in world.queues.items()},
        cohorts={name: replace(c, weight=c.weight * factor) for name, c in world.cohorts.items()},
    )


def alone(world: World, job_id: int) -> World:
    """Give the world in which one job waits, and nothing but quota and nodes counts for it."""
    plain: dict[str, Queue] = {
        name: replace(each, caps=Caps(), budget=None, blocking=Blocking.BEST_EFFORT)
        for name, each in world.queues.items()
    }
    return replace(world, waiting={job_id: world.waiting[job_id]}, queues=plain)


def idle(world: World) -> World:
    """Give the world with nothing running and every node in service."""
    nodes = {
        name: facts._replace(health=DeviceHealth.HEALTHY, foreign=0)
        for name, facts in world.nodes.items()
    }
    return replace(world, running={}, nodes=nodes, ended=[])


def with_less(world: World, dice: Dice) -> World:
    """Give the world with something taken away: a node, devices, service, or quota."""
    less = replace(world, nodes=dict(world.nodes), queues=dict(world.queues))
    what = dice.number(0, 3)
    if what == 0:
        lose_node(less, dice)
    elif what == 1 and less.nodes:
        node_id = dice.pick(list(less.nodes))
        less.nodes[node_id] = less.nodes[node_id]._replace(health=DeviceHealth.CORDONED)
    elif what == 2 and less.nodes:
        node_id = dice.pick(list(less.nodes))
        foreign = less.nodes[node_id].foreign | dice.number(1, 255)
        less.nodes[node_id] = less.nodes[node_id]._replace(foreign=foreign)
    else:
        name = dice.pick(list(less.queues))
        less.queues[name] = _with_half_the_quota(less.queues[name])
    return less


def _with_half_the_quota(queue: Queue) -> Queue:
    rows = tuple(replace(each, nominal=each.nominal // 2) for each in queue.quotas)
    return replace(queue, quotas=rows)


def unthrottled(world: World) -> World:
    """Give the world without caps and budgets."""
    no_budget: Budget | None = None
    return replace(
        world,
        queues={
            name: replace(each, caps=Caps(), budget=no_budget)
            for name, each in world.queues.items()
        },
    )
