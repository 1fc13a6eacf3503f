"""Gangs of one pass are placed anew to let another one in, and stay where they were otherwise."""

from gateway.core.admission import Admit, Policies, plan_cycle
from tests.builders import (
    a_fleet,
    a_gang,
    a_node,
    a_snapshot,
    a_waiting_list,
    devices_of,
)

NODES = [a_node(1), a_node(2)]


def admits(*gangs: tuple[int, int]) -> tuple[Admit, ...]:
    """Decide on gangs of (GPUs a pod, pods), older first, on two nodes of eight and four GPUs."""
    devices = [*devices_of(1), *devices_of(2, gpus=4, nics=4)]
    waiting = a_waiting_list([(0, a_gang(gpu=gpu, pods=pods), 0) for gpu, pods in gangs])
    snapshot = a_snapshot(waiting, a_fleet(NODES, devices))
    return plan_cycle(snapshot, Policies(), now_us=0, budget=100).admits


def nodes_of(admit: Admit) -> list[int]:
    return [placement.node_id for placement in admit.placements]


def test_early_gangs_give_way_within_the_pass() -> None:
    # By themselves the first goes to the smaller node and the second to the larger one.
    assert [nodes_of(each) for each in admits((2, 1), (4, 1))] == [[2], [1]]
    assert [nodes_of(each) for each in admits((2, 1), (4, 1), (6, 1))] == [[1], [2], [1]]


def test_what_fits_nobody_moves_nobody() -> None:
    alone = admits((2, 2), (1, 1))
    beside = admits((2, 2), (5, 2), (1, 1))
    assert [each.placements for each in beside] == [each.placements for each in alone]
