"""Gangs whose pods must, or should, share one value of a node label."""

from dataclasses import replace

import numpy as np
import pytest

from gateway.core.devices.fleet import Fleet
from gateway.core.jobs.request import PodSetRequest
from gateway.core.placing.room import Room
from gateway.core.policies.placement import GangPlaces, pack
from gateway.core.vocabulary import DeviceKind, PairRule
from tests.builders import a_fleet, a_node, a_pod_set, devices_of


def fleet_of_racks(*racks: tuple[str, int]) -> Fleet:
    """Give one node for each (rack, free GPUs); an empty rack is no label."""
    nodes = [
        a_node(i, labels=(("rack", rack),) if rack else ()) for i, (rack, _) in enumerate(racks)
    ]
    devices = [
        device._replace(units_free=100 if device.ordinal < free else 0)
        for i, (_, free) in enumerate(racks)
        for device in devices_of(i)
    ]
    return a_fleet(nodes, devices)


def place(fleet: Fleet, *pod_sets: PodSetRequest) -> GangPlaces | None:
    everywhere = np.ones(len(fleet), dtype=np.bool_)
    return pack(Room(fleet), pod_sets, {each.name: everywhere for each in pod_sets})


def rows(places: GangPlaces | None, name: str = "Worker") -> list[int]:
    return sorted(each.row for each in places[name]) if places else []


def in_rack(pod_set: PodSetRequest, *, required: bool = True) -> PodSetRequest:
    return replace(pod_set, level="rack", is_level_required=required)


def test_all_pods_of_a_set_stand_in_one_domain() -> None:
    fleet = fleet_of_racks(("a", 8), ("b", 8), ("b", 8))
    assert rows(place(fleet, in_rack(a_pod_set(count=2, gpu=8)))) == [1, 2]
    assert place(fleet, in_rack(a_pod_set(count=3, gpu=8))) is None
    assert rows(place(fleet, a_pod_set(count=3, gpu=8))) == [0, 1, 2]


def test_the_domain_in_which_least_is_left_is_used() -> None:
    fleet = fleet_of_racks(("a", 8), ("a", 8), ("b", 4), ("c", 8))
    assert rows(place(fleet, in_rack(a_pod_set(gpu=4)))) == [2]
    assert rows(place(fleet, in_rack(a_pod_set(gpu=8)))) == [3]


def test_equal_domains_are_used_by_name() -> None:
    fleet = fleet_of_racks(("b", 8), ("a", 8))
    assert rows(place(fleet, in_rack(a_pod_set(gpu=8)))) == [1]


def test_nodes_without_the_label_are_no_domain() -> None:
    fleet = fleet_of_racks(("", 8), ("", 8))
    assert place(fleet, in_rack(a_pod_set(gpu=8))) is None
    assert rows(place(fleet, in_rack(a_pod_set(count=2, gpu=8), required=False))) == [0, 1]


def test_a_label_that_no_node_has_is_no_domain() -> None:
    fleet = fleet_of_racks(("a", 8))
    assert place(fleet, replace(a_pod_set(gpu=8), level="block")) is None


def test_a_master_stands_in_the_domain_of_its_workers() -> None:
    fleet = fleet_of_racks(("a", 2), ("b", 8), ("b", 8))
    master, workers = in_rack(a_pod_set("Master", gpu=2)), in_rack(a_pod_set(gpu=8))
    places = place(fleet, master, workers)
    assert (rows(places, "Master"), rows(places)) == ([2], [1])
    free_master = place(fleet, replace(master, level=""), workers)
    assert (rows(free_master, "Master"), rows(free_master)) == ([0], [1])


def test_another_domain_is_tried_when_pod_sets_fit_the_first_only_alone() -> None:
    fleet = fleet_of_racks(("a", 8), ("b", 8), ("b", 8))
    gang = in_rack(a_pod_set("Master", gpu=6)), in_rack(a_pod_set(gpu=7))
    places = place(fleet, *gang)
    assert rows(places, "Master") + rows(places) in ([1, 2], [2, 1])
    assert place(fleet_of_racks(("a", 8), ("b", 8)), *gang) is None


def test_two_levels_choose_a_domain_each() -> None:
    zoned = [a_node(i, labels=(("rack", r), ("zone", z))) for i, (r, z) in enumerate(ZONED)]
    fleet = a_fleet(zoned, [device for i in range(len(ZONED)) for device in devices_of(i)])
    readers = replace(a_pod_set("Reader", count=3, gpu=8), level="zone")
    workers = in_rack(a_pod_set(count=2, gpu=8))
    places = place(fleet, readers, workers)
    assert (rows(places, "Reader"), rows(places)) == ([2, 3, 4], [0, 1])


ZONED = [("a", "x"), ("a", "x"), ("b", "y"), ("c", "y"), ("c", "y")]


def test_a_preferred_domain_is_used_where_one_is_enough() -> None:
    fleet = fleet_of_racks(("a", 8), ("b", 8), ("b", 8))
    assert rows(place(fleet, in_rack(a_pod_set(count=2, gpu=8), required=False))) == [1, 2]


def test_a_preferred_level_that_cannot_be_met_takes_few_domains() -> None:
    fleet = fleet_of_racks(("a", 8), ("b", 8), ("b", 8), ("c", 8), ("c", 8), ("", 8))
    gang = in_rack(a_pod_set(count=4, gpu=8), required=False)
    assert rows(place(fleet, gang)) == [1, 2, 3, 4]
    assert rows(place(fleet, replace(gang, count=5))) == [0, 1, 2, 3, 4]
    assert rows(place(fleet, replace(gang, count=6))) == [0, 1, 2, 3, 4, 5]
    assert place(fleet, replace(gang, count=7)) is None


def test_what_is_left_over_joins_the_domain_that_the_gang_uses_already() -> None:
    fleet = fleet_of_racks(("a", 8), ("b", 8), ("b", 8), ("b", 4))
    master = in_rack(a_pod_set("Master", gpu=4), required=False)
    places = place(fleet, master, in_rack(a_pod_set(count=3, gpu=8), required=False))
    assert rows(places) == [0, 1, 2]
    assert rows(places, "Master") == [3]


def test_one_domain_counts_for_more_than_near_devices() -> None:
    nodes = [a_node(i, labels=(("rack", rack),)) for i, rack in enumerate("abcc")]
    near = [device for i in (0, 1) for device in devices_of(i, gpus=2, nics=2)]
    far = [
        device
        for i in (2, 3)
        for device in devices_of(i, gpus=2)
        if device.kind is DeviceKind.GPU or device.ordinal > 1
    ]
    pods = replace(a_pod_set(count=2, gpu=2, rdma=2), pair=PairRule.SWITCH, is_pair_required=False)
    assert rows(place(a_fleet(nodes, [*near, *far]), pods)) == [0, 1]
    assert rows(place(a_fleet(nodes, [*near, *far]), in_rack(pods, required=False))) == [2, 3]


@pytest.mark.parametrize("count", [1, 5])
def test_a_gang_without_a_level_does_not_care_for_domains(count: int) -> None:
    fleet = fleet_of_racks(("a", 8), ("b", 8), ("", 8))
    gang = a_pod_set(count=count, gpu=4)
    expected = place(fleet_of_racks(("", 8), ("", 8), ("", 8)), gang)
    assert place(fleet, gang) == expected
