"""What a node has room for, and whom it lets in."""

from dataclasses import replace

import numpy as np
import pytest

from gateway.core.jobs.request import PodSetRequest
from gateway.core.placing.eligibility import Eligibility
from gateway.core.placing.room import PodPlace, Room
from gateway.core.queues.definitions import Flavor
from gateway.core.resources import amounts
from gateway.core.resources.node_rules import Requirement, Toleration
from gateway.core.vocabulary import DeviceHealth
from tests.builders import (
    DEFAULT_FLAVOR,
    a_fleet,
    a_node,
    a_pod_set,
    a_tainted_node,
    devices_of,
)

EVERYWHERE = np.array([True, True])
EMPTY = np.zeros((1, 0), dtype=np.int64)
SMALL = {"cpu": 4000, "memory": 8 * 2**30, "pods": 3}


def room_of(**free: int) -> Room:
    small = a_node(1, total={**SMALL, **free}, free={**SMALL, **free})
    return Room(a_fleet((small, a_node(2)), devices_of(1)))


@pytest.mark.parametrize(
    ("asks", "pods"),
    [
        ({"cpu": 2000}, 2),
        ({"cpu": 1000, "memory": 4 * 2**30}, 2),
        ({"cpu": 1, "memory": 1}, 3),  # the pod count binds
        ({"cpu": 1000, "gpu": 4}, 2),
        ({"cpu": 1000, "gpu": 3, "rdma": 5}, 1),
        ({"cpu": 1000, "example.com/fpga": 1}, 0),
    ],
)
def test_a_node_counts_every_resource(asks: dict[str, int], pods: int) -> None:
    room = room_of()
    pod_set = replace(a_pod_set(count=9), per_pod=amounts(asks))
    assert room.capacity(pod_set, EVERYWHERE)[0] == pods


def test_extended_resources_count_like_the_others() -> None:
    room = room_of(**{"example.com/fpga": 2})
    pod_set = replace(a_pod_set(count=9), per_pod=(("example.com/fpga", 1),))
    capacity = room.capacity(pod_set, EVERYWHERE)
    assert capacity.tolist() == [2, 0]


def test_capacity_is_never_more_than_the_pod_set() -> None:
    assert room_of().capacity(a_pod_set(count=1), EVERYWHERE).tolist() == [1, 1]


def test_foreign_use_beyond_the_total_leaves_nothing() -> None:
    node = a_node(1, free={"cpu": -1, "memory": 5, "pods": 5})
    room = Room(a_fleet((node,)))
    assert room.capacity(a_pod_set(), np.array([True])).tolist() == [0]


def test_where_nothing_is_counted_pods_fit_without_end() -> None:
    room = Room(replace(a_fleet((a_node(1),)), resources=(), total=EMPTY, free=EMPTY))
    nothing = replace(a_pod_set(count=50), per_pod=())
    assert room.capacity(nothing, np.array([True])).tolist() == [50]


def test_two_pods_with_one_host_port_never_share_a_node() -> None:
    room = room_of()
    pod_set = replace(a_pod_set(count=4), host_ports=(8080,))
    assert room.capacity(pod_set, EVERYWHERE).tolist() == [1, 1]
    room.take(PodPlace(0, 0, 0), pod_set)
    assert room.capacity(pod_set, EVERYWHERE).tolist() == [0, 1]
    assert room.capacity(replace(pod_set, host_ports=(9090,), count=1), EVERYWHERE).tolist() == [
        1,
        1,
    ]


def test_going_back_to_a_mark_restores_everything() -> None:
    room = room_of()
    pod_set = replace(a_pod_set(gpu=2, rdma=1), host_ports=(8080,))
    before, state = room.mark(), room.state(0)
    room.take(PodPlace(0, 0b11, 0b1), pod_set)
    assert int(room.gpu_free[0]) == 0b11111100
    assert room.state(0) != state
    room.back_to(before)
    assert room.state(0) == state
    assert room.free.tolist() == room.fleet.free.tolist()


def test_emptied_and_healed_nodes_count_in_full() -> None:
    node = a_node(1, health=DeviceHealth.CORDONED, free={"cpu": 0, "memory": 0, "pods": 0})
    room = Room(a_fleet((node,)))
    pod_set = a_pod_set()
    assert room.capacity(pod_set, np.array([True])).tolist() == [0]
    assert room.empty([0]).capacity(pod_set, np.array([True])).tolist() == [0]
    assert room.heal([0]).capacity(pod_set, np.array([True])).tolist() == [1]


def test_sums_count_the_usable_nodes_only() -> None:
    sums = room_of().free_sums(np.array([True, False]))
    assert (sums["gpu"], sums["rdma"], sums["cpu"]) == (8, 8, 4000)


LABELLED = (("gpu", "h100"), ("zone", "a"))
H100 = Flavor(name="h100", node_labels=(("gpu", "h100"),))


def refusal(
    labels: tuple[tuple[str, str], ...], flavor: Flavor, pod_set: PodSetRequest | None = None
) -> str:
    fleet = a_fleet((a_node(1, labels=labels),))
    return Eligibility(fleet, (flavor,)).refusals(pod_set or a_pod_set(), flavor)[0]


def test_a_node_says_why_it_lets_a_pod_set_not_in() -> None:
    assert refusal(LABELLED, H100) == ""
    assert refusal((), H100) == "not of flavor h100"
    selecting = replace(a_pod_set(), node_selector=(("zone", "b"),))
    assert refusal(LABELLED, H100, selecting) == "node selector does not match"
    affine = replace(a_pod_set(), affinity=((Requirement(key="rack", operator="Exists"),),))
    assert refusal(LABELLED, H100, affine) == "required node affinity does not match"


def test_taints_are_tolerated_by_pod_set_or_flavor() -> None:
    fleet = a_fleet((a_tainted_node(1),))
    everything = Toleration(operator="Exists")
    tolerant = Flavor(name="default", tolerations=(everything,))
    plain = Eligibility(fleet, (DEFAULT_FLAVOR,))
    assert plain.refusals(a_pod_set(), DEFAULT_FLAVOR) == ("taint gpu=reserved not tolerated",)
    assert plain.nodes(replace(a_pod_set(), tolerations=(everything,)), DEFAULT_FLAVOR).all()
    assert Eligibility(fleet, (tolerant,)).nodes(a_pod_set(), tolerant).all()


def test_a_node_of_two_flavors_belongs_to_the_first_by_name() -> None:
    fleet = a_fleet((a_node(1, labels=LABELLED),))
    eligibility = Eligibility(fleet, (H100, Flavor(name="all")))
    assert eligibility.flavor_of == ["all"]
    assert not eligibility.nodes(a_pod_set(), H100).any()
