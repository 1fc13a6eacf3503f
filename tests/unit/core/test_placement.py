"""Where the pods of a gang go."""

from dataclasses import replace

import numpy as np
import pytest

from gateway.core.devices.fleet import Fleet
from gateway.core.jobs.request import PodSetRequest, RequestClass
from gateway.core.placing.room import Room, with_rule
from gateway.core.policies import named
from gateway.core.policies.placement import PLACEMENT, GangPlaces, pack
from gateway.core.vocabulary import DeviceKind, PairRule
from gateway.errors import InvalidInput
from tests.builders import a_device, a_fleet, a_gang, a_node, a_pod_set, devices_of


def place(fleet: Fleet, *pod_sets: PodSetRequest) -> GangPlaces | None:
    everywhere = np.ones(len(fleet), dtype=np.bool_)
    return pack(Room(fleet), pod_sets, {each.name: everywhere for each in pod_sets})


def rows(places: GangPlaces | None, name: str = "Worker") -> list[int]:
    return [each.row for each in places[name]] if places else []


def fleet_with_free_gpus(*free: int) -> Fleet:
    """Give nodes of eight GPUs of which the first ones are held."""
    nodes = [a_node(i) for i in range(len(free))]
    devices = [
        device._replace(units_free=0) if device.ordinal < 8 - free[i] else device
        for i in range(len(free))
        for device in devices_of(i)
    ]
    return a_fleet(nodes, devices)


def test_a_gang_is_placed_whole_or_not_at_all() -> None:
    fleet = fleet_with_free_gpus(4, 4, 2)
    room = Room(fleet)
    everywhere = np.ones(3, dtype=np.bool_)
    gang = a_pod_set(count=3, gpu=4)
    assert pack(room, (gang,), {"Worker": everywhere}) is None
    assert room.gpu_free.tolist() == fleet.gpu_free.tolist()
    assert place(fleet, a_pod_set(count=2, gpu=4)) is not None


def test_the_fullest_node_that_takes_the_gang_is_used() -> None:
    assert rows(place(fleet_with_free_gpus(8, 4, 2), a_pod_set(count=2, gpu=2))) == [1, 1]


def test_a_gang_uses_few_nodes() -> None:
    assert rows(place(fleet_with_free_gpus(2, 8, 4), a_pod_set(count=5, gpu=2))) == [1] * 4 + [0]


def test_equal_nodes_are_used_by_name() -> None:
    assert rows(place(fleet_with_free_gpus(8, 8), a_pod_set(gpu=1))) == [0]


def test_among_nodes_of_equal_gpus_the_one_with_less_cpu_is_used() -> None:
    busy = {"cpu": 5000, "memory": 2**40, "pods": 110}
    fleet = a_fleet((a_node(0), a_node(1, free=busy)), ())
    assert rows(place(fleet, a_pod_set())) == [1]


def test_the_master_joins_its_workers_node() -> None:
    places = place(fleet_with_free_gpus(2, 8), a_pod_set("Master"), a_pod_set(count=2, gpu=4))
    assert rows(places) == [1, 1]
    assert rows(places, "Master") == [1]


def test_a_large_pod_steps_aside_for_a_small_one_that_has_no_choice() -> None:
    tight = {"cpu": 9000, "memory": 2**40, "pods": 110}
    fleet = a_fleet((a_node(0, free=tight), a_node(1)), [*devices_of(0), *devices_of(1)])
    master, worker = a_pod_set("Master", gpu=1), a_pod_set(gpu=8)
    nodes = {"Master": np.array([True, False]), "Worker": np.array([True, True])}
    places = pack(Room(fleet), (master, worker), nodes)
    assert rows(places, "Master") == [0]
    assert rows(places) == [1]
    nowhere_else = {"Master": np.array([True, False]), "Worker": np.array([True, False])}
    assert pack(Room(fleet), (master, worker), nowhere_else) is None


def test_unlike_pods_that_only_fit_apart_are_refused_together() -> None:
    fleet = fleet_with_free_gpus(8)
    assert place(fleet, a_pod_set("Master", gpu=5), a_pod_set(gpu=4)) is None
    assert place(fleet, a_pod_set("A", count=2, gpu=3), a_pod_set("B", count=2, gpu=2)) is None


def test_a_preferred_rule_is_met_where_it_can_be() -> None:
    far_nics = [d for d in devices_of(0) if d.kind is DeviceKind.GPU and d.ordinal < 2]
    far_nics += [a_device(0, DeviceKind.RDMA, i) for i in (6, 7)]
    fleet = a_fleet((a_node(0), a_node(1)), [*far_nics, *devices_of(1)])
    gang = replace(a_pod_set(gpu=2, rdma=2), pair=PairRule.SWITCH, is_pair_required=False)
    assert rows(place(fleet, gang)) == [1]
    alone = a_fleet((a_node(0),), far_nics)
    assert rows(place(alone, gang)) == [0]
    assert place(alone, replace(gang, is_pair_required=True)) is None


def test_host_ports_spread_a_gang() -> None:
    gang = replace(a_pod_set(count=2, gpu=1), host_ports=(2222,))
    assert sorted(rows(place(fleet_with_free_gpus(8, 8), gang))) == [0, 1]
    assert place(fleet_with_free_gpus(8), gang) is None


def test_each_pod_gets_devices_of_its_own() -> None:
    places = place(fleet_with_free_gpus(8), a_pod_set(count=4, gpu=2, rdma=2))
    assert places is not None
    assert sum(each.gpu_mask for each in places["Worker"]) == 0b11111111
    assert sum(each.nic_mask for each in places["Worker"]) == 0b11111111


def test_one_rule_can_replace_all_others() -> None:
    assert with_rule(a_gang(), PairRule.NONE) == RequestClass(
        pod_sets=(replace(a_gang().pod_sets[0], pair=PairRule.NONE),)
    )


def test_an_unknown_policy_is_refused_with_the_known_names() -> None:
    with pytest.raises(InvalidInput) as caught:
        named("placement", PLACEMENT, "scatter")
    assert caught.value.allowed == ("fragmentation", "pack", "spread")
    assert caught.value.value == "scatter"
