"""What is kept from change to change equals what is built anew."""

from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.core.devices.building import devices_of_node, fleet_of
from gateway.core.devices.fleet import Fleet
from gateway.core.devices.rows import DeviceRow, NodeRow
from gateway.core.devices.warm import FleetState
from gateway.core.placing.eligibility import Eligibility
from gateway.core.placing.room import Room
from gateway.core.policies.placement import pack
from tests.properties.placing_strategies import (
    FLAVORS,
    a_labelled_node,
    a_levelled_gang,
    allowed_nodes,
    changed_node,
)
from tests.properties.strategies import Dice, seeds

usual = settings(max_examples=100, deadline=None)
Drawn = dict[int, tuple[NodeRow, list[DeviceRow]]]


def cold(drawn: Drawn, *, is_complete: bool) -> Fleet:
    return fleet_of(
        [node for node, _ in drawn.values()],
        {node_id: devices_of_node(devices) for node_id, (_, devices) in drawn.items()},
        is_complete=is_complete,
    )


def change_some(dice: Dice, drawn: Drawn) -> None:
    """Change a few nodes in every way, or let one come or go."""
    for node_id in list(drawn):
        node, devices = drawn[node_id]
        if dice.happens(40):
            drawn[node_id] = changed_node(dice, node, devices), devices
        if dice.happens(5):
            drawn[node_id] = node._replace(is_present=not node.is_present), devices
        if devices and dice.happens(5):
            devices[0] = devices[0]._replace(switch=dice.number(0, 3))
    if dice.happens(20):
        node_id = dice.number(1, 40)
        drawn.setdefault(node_id, a_labelled_node(dice, node_id))


def rows_of(dice: Dice, drawn: Drawn) -> tuple[list[NodeRow], list[DeviceRow]]:
    """Give every row, in some order."""
    nodes = [node for node, _ in drawn.values()]
    devices = [device for _, each in drawn.values() for device in each]
    return dice.pick([nodes, nodes[::-1]]), dice.pick([devices, devices[::-1]])


@given(seeds, st.integers(1, 6))
@usual
def test_a_fleet_that_is_kept_equals_one_that_is_built(seed: int, count: int) -> None:
    dice, state = Dice(seed), FleetState()
    drawn: Drawn = {5 * i: a_labelled_node(dice, 5 * i) for i in range(count)}
    before = None
    for _ in range(5):
        state.apply(*rows_of(dice, drawn))
        is_complete = dice.happens(50)
        change = state.change(is_complete=is_complete)
        assert repr(change.fleet) == repr(cold(drawn, is_complete=is_complete))
        if change.rows is not None and before is not None:
            assert set(change.rows) == different_rows(before, change.fleet)
        before = change.fleet
        assert state.change(is_complete=is_complete).rows == ()
        change_some(dice, drawn)


def different_rows(left: Fleet, right: Fleet) -> set[int]:
    columns = [name for name in Fleet.__dataclass_fields__ if name not in {"machines", "resources"}]
    return {
        row
        for row in range(len(left))
        for name in columns
        if name != "is_complete"
        if repr(getattr(left, name)[row]) != repr(getattr(right, name)[row])
    }


@given(seeds, st.integers(1, 6))
@usual
def test_a_room_that_is_kept_equals_a_new_one(seed: int, count: int) -> None:
    dice, state = Dice(seed), FleetState()
    drawn: Drawn = {i: a_labelled_node(dice, i) for i in range(count)}
    state.apply(*rows_of(dice, drawn))
    fleet = state.change(is_complete=True).fleet
    room = Room(fleet)
    gangs = [a_levelled_gang(dice) for _ in range(3)]
    masks = [allowed_nodes(dice, fleet, gang) for gang in gangs]
    for _ in range(4):
        new = Room(fleet)
        assert room.free.tolist() == new.free.tolist()
        assert room.gpu_free.tolist() == new.gpu_free.tolist()
        assert room.is_available.tolist() == new.is_available.tolist()
        for gang, mask in zip(gangs, masks, strict=True):
            assert pack(room, gang, mask) == pack(new, gang, mask)
        idle = [each.afresh().empty(range(len(fleet))).free.tolist() for each in (room, new)]
        assert idle[0] == idle[1]
        for node_id, (node, devices) in drawn.items():
            if dice.happens(50):
                drawn[node_id] = changed_node(dice, node, devices), devices
        state.apply(*rows_of(dice, drawn))
        fleet, rows = state.change(is_complete=True)
        room.sync(fleet, rows)


@given(seeds, st.integers(1, 6))
@usual
def test_a_kept_room_follows_nodes_that_come_and_go(seed: int, count: int) -> None:
    dice, state = Dice(seed), FleetState()
    drawn: Drawn = {5 * i: a_labelled_node(dice, 5 * i) for i in range(count)}
    state.apply(*rows_of(dice, drawn))
    room = Room(state.change(is_complete=True).fleet)
    for _ in range(4):
        change_some(dice, drawn)
        state.apply(*rows_of(dice, drawn))
        change = state.change(is_complete=True)
        room.sync(*change)
        gang = a_levelled_gang(dice)
        eligible = Eligibility(change.fleet, FLAVORS)
        masks = {each.name: eligible.nodes(each, dice.pick(FLAVORS)) for each in gang}
        assert pack(room, gang, masks) == pack(Room(change.fleet), gang, masks)


def test_a_fleet_that_was_given_out_stays_as_it_is() -> None:
    dice, state = Dice(1), FleetState()
    node, devices = a_labelled_node(dice, 1)
    state.apply([node], devices)
    fleet = state.change(is_complete=True).fleet
    before = repr(fleet)
    state.apply([node._replace(free={"cpu": 1})], [d._replace(is_present=False) for d in devices])
    later = state.change(is_complete=True).fleet
    assert repr(fleet) == before
    assert later.free[0].tolist() == [1, 0, 0]
