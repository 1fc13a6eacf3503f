"""What `fragmentation` and `spread` choose where `pack` would choose otherwise."""

from dataclasses import replace

import numpy as np

from gateway.core.devices.fleet import Bool, Fleet
from gateway.core.jobs.request import PodSetRequest
from gateway.core.placing.room import Room
from gateway.core.placing.typical import MOST_TYPICAL, Asked, Typical
from gateway.core.policies.placement import GangPlaces, PlacementPolicy, fragmentation, pack, spread
from gateway.core.resources import amounts
from gateway.core.vocabulary import PairRule
from tests.builders import a_device, a_fleet, a_node, a_pod_set, devices_of
from tests.unit.core.test_placement import fleet_with_free_gpus, rows

GIB = 2**30
ONE, FOUR, EIGHT = (a_pod_set(gpu=gpus) for gpus in (1, 4, 8))
RACKS = tuple((("rack", name),) for name in ("r1", "r1", "r2", "r2"))


def everywhere(fleet: Fleet) -> Bool:
    return np.ones(len(fleet), dtype=np.bool_)


def typically(fleet: Fleet, *pod_sets: PodSetRequest) -> Room:
    """Give a room of which is known what is typically asked, all of it equally often."""
    room = Room(fleet)
    room.typical = Typical(room, [Asked(each, everywhere(fleet), 1) for each in pod_sets])
    return room


def put(policy: PlacementPolicy, room: Room, *pod_sets: PodSetRequest) -> GangPlaces | None:
    return policy(room, pod_sets, {each.name: everywhere(room.fleet) for each in pod_sets})


def with_free_cpu(*cores: int) -> Fleet:
    nodes = [
        a_node(i, free={"cpu": 1000 * each, "memory": GIB * 1000, "pods": 110})
        for i, each in enumerate(cores)
    ]
    return a_fleet(nodes, [device for i in range(len(cores)) for device in devices_of(i)])


def test_a_small_gang_goes_where_it_breaks_nothing_that_large_ones_need() -> None:
    # Four free GPUs are what a typical gang asks for; the five are fuller than need be, and lose
    # nothing.
    fleet = fleet_with_free_gpus(4, 5)
    assert rows(put(pack, typically(fleet, FOUR), ONE)) == [0]
    assert rows(put(fragmentation, typically(fleet, FOUR), ONE)) == [1]


def test_gpus_without_cpu_are_used_by_who_needs_little_of_it() -> None:
    fleet = with_free_cpu(64, 6)
    hungry = replace(FOUR, per_pod=amounts({"gpu": 4, "cpu": 32_000}))
    small = replace(ONE, per_pod=amounts({"gpu": 1, "cpu": 1000}))
    # Nobody typical can use the second node's GPUs, so taking one of them spoils nothing.
    assert rows(put(fragmentation, typically(fleet, hungry), small)) == [1]


def test_nodes_that_typical_gangs_may_not_use_are_taken_first() -> None:
    fleet = fleet_with_free_gpus(2, 8)
    room = Room(fleet)
    room.typical = Typical(room, [Asked(ONE, np.array([True, False]), 1)])
    assert rows(put(fragmentation, room, a_pod_set(gpu=1, cpu=2000))) == [1]


def test_equal_losses_are_decided_by_best_fit_and_then_by_name() -> None:
    fleet = fleet_with_free_gpus(8, 4, 4)
    assert rows(put(fragmentation, typically(fleet, ONE), ONE)) == [1]


def test_cpu_counts_as_much_as_gpus_for_the_best_fit() -> None:
    fleet = with_free_cpu(192, 20)
    assert rows(put(fragmentation, typically(fleet, a_pod_set()), ONE)) == [1]


def test_equal_fits_are_decided_by_how_near_the_devices_are() -> None:
    near = [d for d in devices_of(1) if d.ordinal < 2]
    far = [d for d in devices_of(0) if d.ordinal < 2]
    far = [d._replace(switch=d.switch + 2, numa=1) if d.device_id >= 500 else d for d in far]
    fleet = a_fleet((a_node(0), a_node(1)), [*far, *near])
    wish = replace(a_pod_set(gpu=1, rdma=1), is_pair_required=False, pair=PairRule.NODE)
    assert rows(put(pack, Room(fleet), wish)) == [0]
    assert rows(put(fragmentation, typically(fleet, ONE), wish)) == [1]


def test_all_pods_of_a_gang_that_one_node_takes_are_put_there() -> None:
    fleet = fleet_with_free_gpus(4, 6)
    places = put(fragmentation, typically(fleet, FOUR), a_pod_set(count=2, gpu=1))
    assert rows(places) == [1, 1]
    assert places is not None
    assert places["Worker"][0].gpu_mask & places["Worker"][1].gpu_mask == 0


def test_gangs_of_several_nodes_or_pod_sets_are_packed() -> None:
    fleet = fleet_with_free_gpus(4, 8, 4)
    several = a_pod_set(count=4, gpu=4)
    with_master = (a_pod_set("Master"), a_pod_set(gpu=2))
    for gang in ((several,), with_master):
        chosen = put(fragmentation, typically(fleet, ONE), *gang)
        assert chosen == put(pack, Room(fleet), *gang)
        assert chosen is not None


def test_where_nothing_is_known_gangs_are_packed() -> None:
    fleet = fleet_with_free_gpus(4, 5)
    assert rows(put(fragmentation, Room(fleet), ONE)) == [0]
    without_gpus = typically(fleet, a_pod_set())
    assert rows(put(fragmentation, without_gpus, ONE)) == [0]


def test_slices_keep_a_gang_off_nodes_without_their_label_too() -> None:
    nodes = [a_node(0), a_node(1, labels=RACKS[0])]
    fleet = a_fleet(nodes, [device for i in range(2) for device in devices_of(i)])
    gang = replace(ONE, slices=(("rack", 1),))
    for policy in (fragmentation, spread):
        assert rows(put(policy, typically(fleet, ONE), gang)) == [1]
        assert put(policy, typically(fleet, ONE), replace(ONE, slices=(("block", 1),))) is None


def test_a_required_level_keeps_a_gang_off_nodes_without_it() -> None:
    nodes = [a_node(0), a_node(1, labels=RACKS[0])]
    fleet = a_fleet(nodes, [device for i in range(2) for device in devices_of(i)])
    gang = replace(ONE, level="rack")
    assert rows(put(fragmentation, typically(fleet, ONE), gang)) == [1]
    nowhere = replace(ONE, level="block")
    assert put(fragmentation, typically(fleet, ONE), nowhere) is None
    preferred = replace(nowhere, is_level_required=False)
    assert rows(put(fragmentation, typically(fleet, ONE), preferred)) == [0]


def test_what_does_not_fit_is_refused_and_takes_nothing() -> None:
    fleet = fleet_with_free_gpus(4, 4)
    for policy in (fragmentation, spread):
        room = typically(fleet, ONE)
        assert put(policy, room, a_pod_set(count=3, gpu=4)) is None
        assert room.gpu_free.tolist() == fleet.gpu_free.tolist()


def test_only_the_most_frequent_requests_are_typical() -> None:
    fleet = fleet_with_free_gpus(4, 5)
    room = Room(fleet)
    frequent = [Asked(FOUR, everywhere(fleet), 2)] * MOST_TYPICAL
    room.typical = Typical(room, [Asked(ONE, everywhere(fleet), 1), *frequent])
    alone = typically(fleet, FOUR)
    for each in (room, alone):
        assert rows(put(fragmentation, each, ONE)) == [1]


def test_a_typical_request_for_what_nobody_has_can_use_nothing() -> None:
    fleet = fleet_with_free_gpus(4, 5)
    exotic = replace(FOUR, per_pod=amounts({"gpu": 4, "example.com/fpga": 1}))
    assert rows(put(fragmentation, typically(fleet, exotic), ONE)) == [0]


def test_what_is_typical_is_remembered_by_a_room_made_afresh() -> None:
    room = typically(fleet_with_free_gpus(4, 5), FOUR)
    assert rows(put(fragmentation, room.afresh(), ONE)) == [1]


def test_states_that_come_later_are_judged_too() -> None:
    room = typically(fleet_with_free_gpus(*[8] * 3), FOUR, ONE)
    placed = [rows(put(fragmentation, room, ONE)) for _ in range(24)]
    assert sorted(row for each in placed for row in each) == [0] * 8 + [1] * 8 + [2] * 8
    assert put(fragmentation, room, ONE) is None


def test_spreading_uses_the_emptiest_nodes_and_each_once() -> None:
    fleet = fleet_with_free_gpus(2, 8, 4)
    assert rows(put(spread, Room(fleet), ONE)) == [1]
    assert rows(put(spread, Room(fleet), a_pod_set(count=3, gpu=1))) == [1, 2, 0]
    assert rows(put(spread, Room(fleet), a_pod_set(count=5, gpu=1))) == [1, 1, 2, 2, 0]
    assert rows(put(spread, Room(fleet), a_pod_set(count=14, gpu=1))) == [1] * 8 + [2] * 4 + [0] * 2


def test_spreading_fills_up_what_is_left_of_small_nodes() -> None:
    fleet = fleet_with_free_gpus(1, 8)
    assert rows(put(spread, Room(fleet), a_pod_set(count=6, gpu=1))) == [1] * 5 + [0]


def test_pod_sets_that_stand_in_each_others_way_are_packed_instead() -> None:
    fleet = fleet_with_free_gpus(4, 3)
    # Spread, the large ones would go first and leave too little for the small ones in one place.
    places = put(spread, Room(fleet), a_pod_set("A", count=2, gpu=2), a_pod_set("B", gpu=3))
    assert rows(places, "B") == [1]
    assert rows(places, "A") == [0, 0]


def test_a_gang_that_wants_one_domain_is_packed_into_it() -> None:
    nodes = [a_node(i, labels=RACKS[i]) for i in range(4)]
    devices = [device for i in range(4) for device in devices_of(i)]
    fleet = a_fleet(nodes, [*devices[:-1], a_device(3, devices[-1].kind, 7, units_free=0)])
    gang = replace(a_pod_set(count=2, gpu=4), level="rack")
    assert put(spread, Room(fleet), gang) == put(pack, Room(fleet), gang)
    preferred = replace(gang, is_level_required=False)
    assert put(spread, Room(fleet), preferred) == put(pack, Room(fleet), preferred)


def test_without_cpu_free_gpus_alone_are_the_fit() -> None:
    bare = {"memory": GIB, "pods": 110}
    nodes = [a_node(i, total=bare, free=bare) for i in range(2)]
    fleet = a_fleet(nodes, [*devices_of(0), *devices_of(1, gpus=4)])
    gang = replace(ONE, per_pod=amounts({"gpu": 1}))
    assert rows(put(fragmentation, typically(fleet, gang), gang)) == [1]


def test_of_equal_nodes_the_one_in_the_fuller_domain_is_used() -> None:
    nodes = [a_node(i, labels=RACKS[i]) for i in range(4)]
    devices = [
        device for i in range(4) for device in devices_of(i) if (i, device.ordinal) != (3, 0)
    ]
    fleet = a_fleet(nodes, devices)
    pair = replace(a_pod_set(count=2, gpu=8), level="rack")
    # The second rack has lost its room for a whole pair already.
    assert rows(put(fragmentation, typically(fleet, pair), EIGHT)) == [2]
    assert rows(put(fragmentation, typically(fleet, EIGHT), EIGHT)) == [0]


def test_nodes_of_no_domain_are_used_before_those_of_one() -> None:
    nodes = [a_node(0, labels=RACKS[0]), a_node(1)]
    fleet = a_fleet(nodes, [*devices_of(0), *devices_of(1)])
    pair = replace(a_pod_set(count=2, gpu=8), level="rack", is_level_required=False)
    assert rows(put(fragmentation, typically(fleet, pair), EIGHT)) == [1]


def test_the_more_frequent_of_two_who_want_a_domain_decides() -> None:
    nodes = [a_node(i, labels=RACKS[i]) for i in (0, 2)]
    fleet = a_fleet(nodes, [*devices_of(0), *devices_of(2, nics=0)])
    halves = replace(a_pod_set(count=2, gpu=4, rdma=4), level="rack")
    wholes = replace(a_pod_set(count=2, gpu=8), level="rack")
    room = Room(fleet)
    asked = [Asked(wholes, everywhere(fleet), 1), Asked(halves, everywhere(fleet), 9)]
    room.typical = Typical(room, asked)
    assert [each.fits for each in room.typical.together] == [room.shapes.fits(halves)]
    assert rows(put(fragmentation, room, EIGHT)) == [1]


def test_each_of_many_typical_requests_may_be_for_nodes_of_its_own() -> None:
    fleet = fleet_with_free_gpus(*[8] * 40)
    room = Room(fleet)
    alone = [np.arange(40) == row for row in range(39)]
    room.typical = Typical(room, [Asked(ONE, mask, 1) for mask in alone])
    # Nobody typical may use the last node.
    assert rows(put(fragmentation, room, ONE)) == [39]


def test_what_was_typical_of_another_fleet_is_forgotten() -> None:
    room = typically(fleet_with_free_gpus(4, 5), FOUR)
    larger = fleet_with_free_gpus(4, 5, 8)
    room.sync(larger, None)
    assert rows(put(fragmentation, room, ONE)) == [0]
