"""Nodes that a gang is to keep off, by name."""

from dataclasses import replace

import pytest

from gateway.core.jobs.request import RequestClass
from gateway.core.placing.room import Room
from gateway.core.policies.placement import PLACEMENT, pack
from gateway.core.vocabulary import Reason
from tests.builders import a_pod_set
from tests.unit.core.test_level_reasons import racks as in_racks
from tests.unit.core.test_level_reasons import told
from tests.unit.core.test_levels import fleet_of_racks, in_rack, place, rows

FULL = fleet_of_racks(("a", 4), ("b", 8), ("b", 8))


def names(*numbers: int) -> tuple[str, ...]:
    return tuple(FULL.names[number] for number in numbers)


@pytest.mark.parametrize("policy", sorted(PLACEMENT))
def test_nodes_that_are_better_avoided_come_last_under_every_policy(policy: str) -> None:
    gang = replace(a_pod_set(gpu=4), avoid=names(0, 1), is_avoid_required=False)
    masks = {"Worker": FULL.is_available.copy()}
    room = Room(FULL)
    used = []
    for _ in range(5):
        places = PLACEMENT[policy](room, (gang,), masks)
        used += rows(places)
    assert used[:2] == [2, 2]
    assert sorted(used[2:]) == [0, 1, 1]
    assert pack(room, (gang,), masks) is None


def test_a_node_to_avoid_counts_for_more_than_one_rack() -> None:
    gang = replace(a_pod_set(count=2, gpu=4), avoid=names(2), is_avoid_required=False)
    assert rows(place(FULL, in_rack(gang))) == [1, 1]
    wide = replace(in_rack(a_pod_set(count=2, gpu=8), required=False), avoid=names(2))
    four = replace(in_rack(a_pod_set(count=3, gpu=4), required=False), avoid=names(2))
    assert rows(place(FULL, replace(wide, is_avoid_required=False))) == [1, 2]
    assert rows(place(FULL, replace(four, is_avoid_required=False))) == [0, 1, 1]


def test_each_pod_set_avoids_its_own() -> None:
    master = replace(a_pod_set("Master", gpu=4), avoid=names(0), is_avoid_required=False)
    places = place(FULL, master, a_pod_set(gpu=4))
    assert (rows(places, "Master"), rows(places)) == ([1], [0])


def test_who_waits_is_told_how_many_nodes_it_avoids() -> None:
    fleet = in_racks("", "", "", sick=1)
    gang = replace(a_pod_set(gpu=8), avoid=(fleet.names[1], fleet.names[2]))
    hold = told(RequestClass(pod_sets=(gang,)), fleet)
    assert hold.reason is Reason.NODES_UNAVAILABLE
    assert "2 of 3 nodes: the job avoids it" in [cause.detail for cause in hold.causes]
