"""Gangs of one pass are placed anew to let another one in, and stay where they were otherwise."""

import numpy as np
import pytest

from gateway.core.admission import Admit, Policies, plan_cycle
from gateway.core.admission.repacking import MOST_REPACKED, Gang, Repacking
from gateway.core.placing.room import Room
from gateway.core.policies.placement import pack
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


def anywhere(gpu: int) -> Gang:
    request = a_gang(gpu=gpu)
    return Gang(request, {"Worker": np.ones(len(NODES), dtype=np.bool_)})


def test_no_move_makes_room_for_one_that_was_refused_already() -> None:
    room = Room(a_fleet(NODES, [*devices_of(1, nics=0), *devices_of(2, gpus=4, nics=0)]))
    mark, early, late = room.mark(), [anywhere(1), anywhere(4)], anywhere(6)
    standing = [
        (each, places)
        for each in early
        if (places := pack(room, each.request.pod_sets, each.nodes)) is not None
    ]
    before = room.gpu_free.tolist()
    repacking = Repacking(room, pack, mark)
    assert repacking.with_newcomer(standing, late, [anywhere(1)]) is None, "one GPU would be left"
    assert room.gpu_free.tolist() == before, "everybody stands where they stood"
    assert repacking.with_newcomer(standing, late, [anywhere(2)]) is not None


@pytest.mark.parametrize(("early", "late"), [(MOST_REPACKED, 1), (MOST_REPACKED + 1, 0)])
def test_only_short_passes_move_anybody(early: int, late: int) -> None:
    singles = early - 2
    nodes = [a_node(number) for number in range(1, singles + 3)]
    devices = [each for number in range(1, singles + 1) for each in devices_of(number, 1, 0)]
    devices += [*devices_of(singles + 1, nics=0), *devices_of(singles + 2, 4, 0)]
    sizes = [*[1] * singles, 2, 4, 6]
    waiting = a_waiting_list([(0, a_gang(gpu=size), 0) for size in sizes])
    snapshot = a_snapshot(waiting, a_fleet(nodes, devices))
    admitted = plan_cycle(snapshot, Policies(), now_us=0, budget=100).admits
    assert len(admitted) == early + late
