"""A gang that its slices keep out is told so: how many have room, and what would let it start."""

from dataclasses import replace

import numpy as np

from gateway.core.admission.slice_causes import slice_cause
from gateway.core.admission.unblock import Lift
from gateway.core.jobs.request import RequestClass
from gateway.core.placing.room import Room
from gateway.core.vocabulary import LiftKind, Reason
from tests.builders import a_fleet, a_node, devices_of
from tests.unit.core.test_level_reasons import a_rack_gang, racks, told


def in_slices(pods: int, size: int = 2, level: str = "") -> RequestClass:
    (workers,) = a_rack_gang(pods).pod_sets
    return RequestClass(pod_sets=(replace(workers, level=level, slices=(("rack", size),)),))


def details(gang: RequestClass, *names: str, sick: int = 0) -> list[str]:
    return [cause.detail for cause in told(gang, racks(*names, sick=sick)).causes]


def test_the_slices_that_have_room_are_told() -> None:
    assert (
        "room for 1 slice of 2 Worker pods (2 pods in one domain of rack); "
        "the gang has 2 whole slices of them"
    ) in details(in_slices(4), "a", "a", "b", "b", "c", sick=3)


def test_inside_a_level_only_its_best_domain_counts() -> None:
    gang = in_slices(4, level="zone")
    assert told(gang, racks("a", "a", "b", "b")).reason is Reason.NEVER_FITS
    (workers,) = in_slices(4, level="zone").pod_sets
    labels = [(("rack", rack), ("zone", zone)) for rack, zone in ZONED]
    nodes = [a_node(i, labels=each) for i, each in enumerate(labels)]
    fleet = a_fleet(nodes, [each for node in nodes for each in devices_of(node.node_id, nics=0)])
    capacity = np.ones(len(nodes), dtype=np.int64)
    cause = slice_cause(Room(fleet), workers, capacity)
    assert cause is not None
    assert cause.detail.startswith("room for 1 slice of 2 Worker pods")
    loose = replace(workers, is_level_required=False)
    assert slice_cause(Room(fleet), loose, capacity) is None


ZONED = [("a", "x"), ("a", "x"), ("b", "x"), ("c", "y"), ("d", "y"), ("d", "y")]


def test_a_gang_that_no_idle_nodes_hold_in_slices_is_told_so() -> None:
    assert details(in_slices(4), "a", "a", "a", "b") == [
        "no room for the whole gang in slices of 2 pods in one domain of rack, even when idle"
    ]


def test_what_would_help_is_to_do_without_slices_or_another_node() -> None:
    hold = told(in_slices(4), racks("a", "a", "b", "b", "c", sick=3))
    assert "accept pods without slices of 2 pods in one domain of rack" in hold.unblock
    assert (Lift(kind=LiftKind.SLICES, target="rack", amount=2),) in hold.lifts
    assert "node-03 to be back in service" in hold.unblock


def test_a_master_and_workers_that_fit_slices_only_alone_are_told_both() -> None:
    (workers,) = in_slices(3).pod_sets
    master = replace(workers, name="Master", count=1)
    gang = RequestClass(pod_sets=(master, workers))
    words = details(gang, "a", "a", "b", "b", "c", sick=3)
    assert words[0] == (
        "4 of 5 nodes: room for a Master pod, but not for the whole gang at once, "
        "in slices of 2 pods in one domain of rack"
    )
