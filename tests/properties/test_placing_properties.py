"""Placement against its plain oracle, and what holds for every gang on every state."""

import os
import subprocess
import sys
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.core.devices.fleet import Fleet
from gateway.core.placing.room import Room
from gateway.core.policies.placement import GangPlaces, PodSets, pack
from tests.builders import a_fleet
from tests.properties.placing_strategies import (
    a_labelled_node,
    a_levelled_fleet,
    a_levelled_gang,
    allowed_nodes,
)
from tests.properties.plain_placing import PlainRoom, domain_names, plain_pack
from tests.properties.strategies import Dice, seeds

usual = settings(max_examples=150, deadline=None)
sizes = st.integers(1, 9)


def columns(room: Room | PlainRoom) -> list[list[object]]:
    return [room.free.tolist(), room.gpu_free.tolist(), room.nic_free.tolist()]


@given(seeds, sizes)
@usual
def test_one_gang_after_the_other_is_placed_as_by_plain_search(seed: int, count: int) -> None:
    dice = Dice(seed)
    fleet = a_levelled_fleet(dice, count)
    room, plain = Room(fleet), PlainRoom(fleet)
    gangs = [a_levelled_gang(dice) for _ in range(3)]
    masks = [allowed_nodes(dice, fleet, gang) for gang in gangs]
    for index in (0, 1, 2, 0, 1):
        expected = plain_pack(plain, gangs[index], masks[index])
        assert pack(room, gangs[index], masks[index]) == expected
        assert columns(room) == columns(plain)


@given(seeds, sizes)
@usual
def test_going_back_restores_everything_and_later_trials_see_it(seed: int, count: int) -> None:
    dice = Dice(seed)
    fleet = a_levelled_fleet(dice, count)
    room = Room(fleet)
    gangs = [a_levelled_gang(dice) for _ in range(3)]
    masks = [allowed_nodes(dice, fleet, gang) for gang in gangs]
    for taken in range(3):
        pack(room, gangs[taken], masks[taken])
        mark, before = room.mark(), columns(room)
        first = [pack(room, gang, mask) for gang, mask in zip(gangs, masks, strict=True)]
        room.back_to(mark)
        assert columns(room) == before
        again = [pack(room, gang, mask) for gang, mask in zip(gangs, masks, strict=True)]
        assert again == first
        room.back_to(mark)


def domains_used(fleet: Fleet, places: GangPlaces, names: list[str], label: str) -> set[str]:
    domains = domain_names(fleet, label)
    return {domains[place.row] for name in names for place in places[name]}


@given(seeds, sizes)
@usual
def test_pod_sets_that_require_one_level_stand_in_one_domain_of_it(seed: int, count: int) -> None:
    dice = Dice(seed)
    fleet, gang = a_levelled_fleet(dice, count), a_levelled_gang(dice)
    places = pack(Room(fleet), gang, allowed_nodes(dice, fleet, gang))
    for label in {each.level for each in gang if each.level and each.is_level_required}:
        names = [each.name for each in gang if each.level == label and each.is_level_required]
        if places is not None:
            used = domains_used(fleet, places, names, label)
            assert len(used) == 1
            assert "" not in used


def without_levels(gang: PodSets) -> PodSets:
    return tuple(replace(each, level="") for each in gang)


def preferring(gang: PodSets) -> PodSets:
    return tuple(replace(each, is_level_required=False) for each in gang)


@given(seeds, sizes)
@usual
def test_a_preferred_level_blocks_nothing_and_is_met_where_it_can_be(seed: int, count: int) -> None:
    dice = Dice(seed)
    fleet = a_levelled_fleet(dice, count)
    # Nodes to avoid come before levels, and would be given up for a required one.
    gang = tuple(replace(each, avoid=()) for each in a_levelled_gang(dice))
    masks = allowed_nodes(dice, fleet, gang)
    anywhere = pack(Room(fleet), without_levels(gang), masks)
    preferred = pack(Room(fleet), preferring(gang), masks)
    if sum(each.count > 1 for each in gang) <= 1:
        assert (preferred is None) == (anywhere is None)
    required = tuple(replace(each, is_level_required=True) for each in gang)
    met = pack(Room(fleet), required, masks)
    if met is not None:
        assert preferred == met


@given(seeds, sizes)
@usual
def test_what_fails_on_a_state_fails_on_it_minus_anything(seed: int, count: int) -> None:
    dice = Dice(seed)
    fleet = a_levelled_fleet(dice, count)
    gang = a_levelled_gang(dice)
    masks = allowed_nodes(dice, fleet, gang)
    if sum(each.count > 1 for each in gang) > 1 or pack(Room(fleet), gang, masks) is not None:
        return
    fewer = replace(
        fleet,
        free=fleet.free - dice.rng.integers(0, 2000, fleet.free.shape),
        gpu_free=fleet.gpu_free & dice.rng.integers(0, 256, count),
        nic_free=fleet.nic_free & dice.rng.integers(0, 256, count),
        is_available=fleet.is_available & (dice.rng.integers(0, 4, count) > 0),
    )
    assert pack(Room(fewer), gang, masks) is None


@given(seeds, sizes)
@usual
def test_nodes_listed_in_another_order_change_nothing(seed: int, count: int) -> None:
    dice = Dice(seed)
    drawn = [a_labelled_node(dice, node_id) for node_id in range(count)]
    gang = a_levelled_gang(dice)
    devices = [device for _, each in drawn for device in each]
    nodes = [node for node, _ in drawn]
    fleets = a_fleet(nodes, devices), a_fleet(nodes[::-1], devices[::-1])
    masks = allowed_nodes(dice, fleets[0], gang)
    placed, other = (pack(Room(fleet), gang, masks) for fleet in fleets)
    assert placed == other


DRAW_AND_PLACE = """
from gateway.core.placing.room import Room
from gateway.core.policies.placement import pack
from tests.properties.placing_strategies import a_levelled_fleet, a_levelled_gang, allowed_nodes
from tests.properties.strategies import Dice

for seed in range(40):
    dice = Dice(seed)
    fleet, gang = a_levelled_fleet(dice, 8), a_levelled_gang(dice)
    print(pack(Room(fleet), gang, allowed_nodes(dice, fleet, gang)))
"""


def test_the_hash_seed_changes_nothing() -> None:
    told = [
        subprocess.run(
            [sys.executable, "-c", DRAW_AND_PLACE],
            env={
                **os.environ,
                "PYTHONHASHSEED": hash_seed,
                "PYTHONPATH": os.pathsep.join(sys.path),
            },
            capture_output=True,
            check=True,
        ).stdout
        for hash_seed in ("1", "2")
    ]
    assert told[0] == told[1]
    assert b"PodPlace" in told[0]
