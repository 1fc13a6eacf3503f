"""Rooms, fleets and answers that are kept, and when they are begun again."""

from dataclasses import replace

import numpy as np

from gateway.core.devices.fleet import Fleet
from gateway.core.devices.warm import PAIRS_A_NODE, SPARE_PAIRS, FleetState
from gateway.core.placing import attempts, base, eligibility, views
from gateway.core.placing.eligibility import Eligibility
from gateway.core.placing.room import PodPlace, Room
from gateway.core.policies.placement import pack
from gateway.core.resources import amounts
from gateway.core.vocabulary import DeviceHealth
from gateway.core.vocabulary import DeviceKind as Kind
from tests.builders import DEFAULT_FLAVOR, a_device, a_fleet, a_node, a_pod_set, devices_of

HERE = np.array([True])
POD = a_pod_set(gpu=1)


def a_state(*nodes: int) -> FleetState:
    state = FleetState()
    state.apply(
        [a_node(node) for node in nodes], [each for node in nodes for each in devices_of(node)]
    )
    return state


def fleet_of(state: FleetState) -> Fleet:
    return state.change(is_complete=True).fleet


def test_only_the_nodes_that_changed_are_named() -> None:
    state = a_state(1, 2, 3)
    assert state.change(is_complete=True).rows is None
    assert state.change(is_complete=True).rows == ()
    state.apply([a_node(2, health=DeviceHealth.CORDONED), a_node(3)], devices_of(1))
    state.apply([], [a_device(3, Kind.GPU, 0, units_free=0)])
    change = state.change(is_complete=True)
    assert change.rows == (1, 2)
    assert change.fleet.is_available.tolist() == [True, False, True]
    assert change.fleet.gpu_free.tolist() == [255, 255, 254]


def test_a_node_that_comes_or_goes_renumbers_the_rows() -> None:
    state = a_state(1, 3)
    fleet_of(state)
    state.apply([a_node(2)], devices_of(2))
    change = state.change(is_complete=True)
    assert (change.fleet.names, change.rows) == (("node-01", "node-02", "node-03"), None)
    state.apply([a_node(1, is_present=False)], [])
    assert fleet_of(state).names == ("node-02", "node-03")


def test_devices_of_a_node_that_is_not_known_wait_for_it() -> None:
    state = a_state(1)
    fleet_of(state)
    state.apply([], devices_of(2))
    assert len(fleet_of(state)) == 1
    state.apply([], [a_device(2, Kind.GPU, 0, units_free=0)])
    assert state.change(is_complete=True).rows == ()
    state.apply([a_node(2)], [])
    assert fleet_of(state).gpu_free.tolist() == [255, 254]


def test_devices_beyond_what_a_mask_holds_are_left_alone() -> None:
    state = a_state(1)
    fleet_of(state)
    state.apply([], [a_device(1, Kind.GPU, 62)])
    assert state.change(is_complete=True).rows == ()


def test_labels_of_nodes_that_are_gone_are_forgotten() -> None:
    state = a_state(1)
    many = PAIRS_A_NODE + SPARE_PAIRS + 1
    for first in (0, many):
        labels = tuple((f"key-{i:05d}", "") for i in range(first, first + many))
        state.apply([a_node(1, labels=labels)], [])
        assert fleet_of(state).labels == (labels,)


def test_a_room_follows_a_fleet_and_gives_back_what_was_taken() -> None:
    state = a_state(1)
    room = Room(fleet_of(state))
    assert pack(room, (POD,), {"Worker": HERE}) is not None
    state.apply([], [a_device(1, Kind.GPU, 7, units_free=0)])
    room.sync(*state.change(is_complete=True))
    assert room.gpu_free.tolist() == [0b01111111]
    assert room.mark() == 0


def test_a_room_begins_again_when_resources_change_or_too_many_states_were_seen() -> None:
    fleet = a_fleet((a_node(1),), devices_of(1))
    room = Room(fleet)
    states = room.shapes.states
    room.sync(fleet, ())
    assert room.shapes.states is states
    for _ in range(base.SPARE_STATES + 5):
        room.take(PodPlace(0, 0, 0), replace(POD, per_pod=amounts({"cpu": 1})))
    room.sync(fleet, ())
    assert room.shapes.states is not states
    assert room.free.tolist() == fleet.free.tolist()
    other = a_fleet((a_node(1, total={"cpu": 1, "memory": 1, "pods": 1, "fpga": 1}),))
    room.sync(other, (0,))
    assert room.fleet is other
    assert room.free.shape == (1, 4)


def test_views_and_prepared_gangs_are_kept_up_to_a_number() -> None:
    room = Room(a_fleet((a_node(1),), devices_of(1)))
    masks = [HERE.copy() for _ in range(attempts.MAX_PREPARED + 2)]
    assert attempts.MAX_PREPARED > views.MAX_VIEWS
    for mask in (*masks, masks[0]):
        assert pack(room, (POD,), {"Worker": mask}) is not None
        room.back_to(0)


def test_views_follow_however_many_changes() -> None:
    room = Room(a_fleet((a_node(1), a_node(2)), devices_of(1)))
    everywhere = np.array([True, True])
    for times in (views.MANY_CHANGES + 1, views.MAX_CHANGES + 1):
        for _ in range(times // 2 + 1):
            room.take(PodPlace(0, 0b1, 0), POD)
            room.back_to(0)
        assert pack(room, (a_pod_set(count=8, gpu=1),), {"Worker": everywhere}) is not None
        assert pack(room, (POD,), {"Worker": everywhere}) is None
        room.back_to(0)


def test_node_rules_are_remembered_up_to_a_number() -> None:
    count = eligibility.MAX_MASKS + 1
    judged = Eligibility(a_fleet((a_node(1, labels=(("n", "0"),)),)), (DEFAULT_FLAVOR,))
    pod_sets = [replace(POD, node_selector=(("n", str(i)),)) for i in range(count)]
    masks = [judged.nodes(each, DEFAULT_FLAVOR)[0] for each in pod_sets]
    words = [
        judged.refusals(each, DEFAULT_FLAVOR) for each in pod_sets[: eligibility.MAX_WORDS + 1]
    ]
    assert masks == [True] + [False] * (count - 1)
    assert words[0] == ("",)
    assert set(words[1:]) == {("node selector does not match",)}


def test_a_relabelled_node_moves_to_its_new_domain() -> None:
    state = a_state(1, 2)
    room, gang = Room(fleet_of(state)), (replace(a_pod_set(count=2, gpu=8), level="rack"),)
    masks = {"Worker": np.array([True, True])}
    assert pack(room, gang, masks) is None
    for rack in ("a", "b"):
        state.apply([a_node(i, labels=(("rack", rack),)) for i in (1, 2)], [])
        room.sync(*state.change(is_complete=True))
        assert pack(room, gang, masks) is not None
    state.apply([a_node(1, labels=(("rack", "c"),))], [])
    room.sync(*state.change(is_complete=True))
    assert pack(room, gang, masks) is None


def test_what_nobody_has_is_free_nowhere() -> None:
    room = Room(a_fleet((a_node(1),), devices_of(1)))
    assert room.free_of("example.com/fpga").tolist() == [0]
    assert room.free_of("gpu").tolist() == [8]
    assert room.free_of("rdma").tolist() == [8]
    assert room.free_of("cpu").tolist() == [192_000]
    assert room.need(POD).tolist() == [1000, 0, 1]
