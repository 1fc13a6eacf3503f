"""Gangs in slices: every so many pods in rank order in one domain."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from gateway.core.devices.fleet import Fleet
from gateway.core.jobs.request import PodSetRequest
from gateway.core.placing.room import Room
from gateway.core.policies.placement import GangPlaces, pack
from gateway.core.resources import amounts
from tests.builders import a_fleet, a_node, a_pod_set

Labels = dict[str, str]


def a_pod(count: int, name: str = "Worker", cpu: int = 1000) -> PodSetRequest:
    return replace(a_pod_set(name, count=count), per_pod=amounts({"cpu": cpu}))


def fleet_of(*nodes: tuple[int, Labels]) -> Fleet:
    """Give a node for each number of pods it takes and its labels."""
    rows = [
        a_node(i, labels=tuple(sorted(labels.items())), free={"cpu": 1000 * pods, "pods": 110})
        for i, (pods, labels) in enumerate(nodes)
    ]
    return a_fleet(rows, [])


def in_nodes(*pods: int) -> Fleet:
    return fleet_of(*((each, {"host": f"n{i}"}) for i, each in enumerate(pods)))


def place(fleet: Fleet, *pod_sets: PodSetRequest) -> GangPlaces | None:
    everywhere = np.ones(len(fleet), dtype=np.bool_)
    return pack(Room(fleet), pod_sets, {each.name: everywhere for each in pod_sets})


def rows(places: GangPlaces | None, name: str = "Worker") -> list[int]:
    return [each.row for each in places[name]] if places else []


def cut(pod_set: PodSetRequest, *slices: tuple[str, int]) -> PodSetRequest:
    return replace(pod_set, slices=slices)


def per_node(placed: Sequence[int], nodes: int) -> list[int]:
    return np.bincount(placed, minlength=nodes).tolist() if placed else []


def test_slices_take_the_fewest_domains_and_the_last_of_them_fits_best() -> None:
    placed = rows(place(in_nodes(6, 5, 4, 3, 2), cut(a_pod(12), ("host", 2))))
    assert per_node(placed, 5) == [6, 0, 4, 0, 2]


# After a peer's solver: four nodes take 5, 7, 6 and 4 pods, two to a block.
PEER = [(5, "a", "n1"), (7, "a", "n2"), (6, "b", "n3"), (4, "b", "n4")]


def the_peer() -> Fleet:
    return fleet_of(*((pods, {"block": b, "host": h}) for pods, b, h in PEER))


@pytest.mark.parametrize(
    ("slices", "most"),
    [
        ((("host", 4),), 16),
        ((("block", 8),), 16),
        ((("block", 8), ("host", 2)), 16),
        ((("host", 2),), 20),
        ((("block", 4),), 20),
    ],
)
def test_what_a_domain_takes_is_rounded_down_to_slices(
    slices: tuple[tuple[str, int], ...], most: int
) -> None:
    size = slices[0][1]
    assert len(rows(place(the_peer(), cut(a_pod(most), *slices)))) == most
    assert place(the_peer(), cut(a_pod(most + size), *slices)) is None


def test_two_nodes_of_five_hold_no_ten_pods_by_fours() -> None:
    assert place(in_nodes(5, 5), cut(a_pod(8), ("host", 4))) is not None
    # What is left over counts as a whole slice.
    assert place(in_nodes(5, 5), cut(a_pod(10), ("host", 4))) is None


def test_slices_of_slices_lie_inside_each_other() -> None:
    placed = rows(place(the_peer(), cut(a_pod(16), ("block", 8), ("host", 2))))
    blocks, hosts = [PEER[row][1] for row in placed], [PEER[row][2] for row in placed]
    assert [len(set(blocks[i : i + 8])) for i in (0, 8)] == [1, 1]
    assert {len(set(hosts[i : i + 2])) for i in range(0, 16, 2)} == {1}


def test_slices_stay_inside_the_level_of_the_gang() -> None:
    nodes = [(4, {"block": b, "rack": r}) for b, r in ("ap", "aq", "br", "bs", "bt")]
    gang = replace(cut(a_pod(12), ("rack", 4)), level="block")
    assert rows(place(fleet_of(*nodes), gang)) == [2] * 4 + [3] * 4 + [4] * 4
    more = replace(gang, count=16)
    assert place(fleet_of(*nodes), more) is None
    preferred = rows(place(fleet_of(*nodes), replace(more, is_level_required=False)))
    assert preferred == [2] * 4 + [3] * 4 + [4] * 4 + [0] * 4


def test_nodes_outside_of_every_preferred_level_come_last() -> None:
    fleet = fleet_of((4, {"rack": "p"}), (4, {"block": "b", "rack": "q"}))
    gang = replace(cut(a_pod(8), ("rack", 4)), level="block", is_level_required=False)
    assert rows(place(fleet, gang)) == [1] * 4 + [0] * 4


def test_nodes_without_the_label_of_a_slice_are_not_used() -> None:
    fleet = fleet_of((8, {}), (4, {"rack": "p"}))
    assert rows(place(fleet, cut(a_pod(4), ("rack", 4)))) == [1] * 4
    assert place(fleet, cut(a_pod(8), ("rack", 4))) is None


def test_a_master_is_the_first_pod_of_the_first_slice() -> None:
    gang = [cut(each, ("host", 4)) for each in (a_pod(1, "Master"), a_pod(7))]
    places = place(in_nodes(5, 4, 3), *gang)
    assert (rows(places, "Master"), rows(places)) == ([1], [1] * 3 + [0] * 4)
    assert place(in_nodes(4, 3, 3), *gang) is None


def test_a_large_master_stands_where_its_slice_has_room_beside_it() -> None:
    gang = [cut(each, ("host", 4)) for each in (a_pod(1, "Master", cpu=3000), a_pod(7))]
    places = place(in_nodes(4, 6, 5), *gang)
    assert (rows(places, "Master"), rows(places)) == ([1], [1] * 3 + [0] * 4)
    assert place(in_nodes(4, 5, 5), *gang) is None


def test_sets_without_slices_fill_up_beside_them() -> None:
    gang = [cut(a_pod(4), ("host", 2)), a_pod(2, "Reader")]
    places = place(in_nodes(3, 2, 1), *gang)
    assert per_node(rows(places), 3) == [2, 2, 0]
    assert per_node(rows(places, "Reader"), 3) == [1, 0, 1]
    assert place(in_nodes(3, 2), *gang) is None
