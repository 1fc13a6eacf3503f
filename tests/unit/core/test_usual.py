"""What is usual is taken from what was asked of late, and where a pass places by it."""

from dataclasses import replace
from typing import Any

import pytest

from gateway.core.admission import Policies, Snapshot, plan_cycle
from gateway.core.admission.snapshots import snapshot_of, state_of
from gateway.core.admission.state import State
from gateway.core.admission.usual import Requested
from gateway.core.devices.building import fleet_of
from gateway.core.devices.fleet import Fleet
from gateway.core.jobs.request import RequestClass
from gateway.core.mirror import ClassRow, DefinitionRows, Mirror, MirrorRows
from gateway.core.queues.definitions import Flavor, Queue
from tests.builders import DEFAULT_FLAVOR, a_fleet, a_gang, a_node, a_snapshot, a_waiting_list
from tests.builders import devices_of as devices
from tests.unit.core.test_placement import fleet_with_free_gpus

FRAGMENTATION = Policies(placement="fragmentation")
ONE, FOUR, EIGHT = a_gang(gpu=1), a_gang(gpu=4), a_gang(gpu=8)
TIGHT, LOOSE = 0, 1
"""Nodes of four and of five free GPUs: best fit takes the first, who spares fours the second."""


def a_case(*waiting: RequestClass, recent: Requested = ()) -> Snapshot:
    """Give jobs in line for a fleet on which a gang of one GPU has that choice."""
    jobs = [(0, gang, 0) for gang in waiting]
    return replace(a_snapshot(a_waiting_list(jobs), fleet_with_free_gpus(4, 5)), recent=recent)


def node_of_first(snapshot: Snapshot, policies: Policies = FRAGMENTATION) -> int:
    plan = plan_cycle(snapshot, policies, now_us=1, budget=100)
    return plan.admits[0].placements[0].node_id


def state(snapshot: Snapshot, policies: Policies = FRAGMENTATION) -> State:
    return state_of(snapshot, policies, 1)


def test_those_who_wait_tell_what_is_usual_when_nothing_else_does() -> None:
    assert node_of_first(a_case(ONE, FOUR)) == LOOSE
    assert node_of_first(a_case(ONE)) == TIGHT


def test_what_was_asked_of_late_counts_instead_where_it_is_known() -> None:
    assert node_of_first(a_case(ONE, recent=((FOUR, 10),))) == LOOSE
    assert node_of_first(a_case(ONE, FOUR, recent=((ONE, 10),))) == TIGHT


@pytest.mark.parametrize("name", ["pack", "spread"])
def test_policies_that_do_not_care_are_told_nothing(name: str) -> None:
    assert state(a_case(ONE, FOUR), Policies(placement=name)).typical() is None
    assert node_of_first(a_case(ONE, FOUR), Policies(placement=name)) == int(name == "spread")


def test_about_the_same_numbers_give_the_same_object() -> None:
    known = state(a_case(recent=((ONE, 100), (FOUR, 9))))
    first = known.typical()
    known.recent = ((ONE, 97), (FOUR, 8))
    assert known.typical() is first
    known.recent = ((ONE, 40), (FOUR, 8))
    second = known.typical()
    assert second is not first
    known.recent = ((ONE, 40), (EIGHT, 8))
    assert known.typical() not in {first, second}
    known.recent = ((ONE, 40),)
    assert known.typical() not in {first, second}


def test_another_fleet_or_other_flavors_are_looked_at_anew() -> None:
    known = state(a_case(ONE))
    first = known.typical()
    known.move(a_fleet([a_node(7)], devices(7)), None)
    second = known.typical()
    assert second is not first
    known.define(known.definitions._replace(flavors=(Flavor(name="a"), Flavor(name="b"))))
    assert known.typical() is not second
    known.define(known.definitions._replace(flavors=()))
    assert known.typical() is not None


def test_a_snapshot_carries_what_was_asked_of_late() -> None:
    snapshot = a_case(ONE, recent=((FOUR, 10), (ONE, 3)))
    assert snapshot_of(state(snapshot), 1).recent == snapshot.recent


def a_mirror(fleet: Fleet) -> Mirror:
    mirror = Mirror(FRAGMENTATION)
    mirror.apply(
        MirrorRows(
            classes=(ClassRow(7, ONE), ClassRow(5, FOUR)),
            definitions=DefinitionRows(1, (Queue(name="default"),), (), (DEFAULT_FLAVOR,)),
        )
    )
    mirror.state.move(fleet, None)
    return mirror


def test_a_mirror_takes_counts_of_classes_it_knows() -> None:
    mirror = a_mirror(fleet_with_free_gpus(4, 5))
    mirror.apply(MirrorRows(recent={7: 2, 5: 9, 6: 1}))
    assert mirror.snapshot(1).recent == ((FOUR, 9), (ONE, 2))
    mirror.apply(MirrorRows())
    assert mirror.snapshot(1).recent == ((FOUR, 9), (ONE, 2))
    mirror.apply(MirrorRows(recent={}))
    assert mirror.snapshot(1).recent == ()


def test_a_request_that_makes_no_sense_is_nothing_usual() -> None:
    broken: tuple[Any, ...] = (("no requirement",),)
    strange = RequestClass(pod_sets=(replace(FOUR.pod_sets[0], affinity=broken),))
    assert node_of_first(a_case(ONE, recent=((strange, 9),))) == TIGHT
    assert node_of_first(a_case(ONE, recent=((strange, 9), (FOUR, 9)))) == LOOSE


def test_the_order_of_many_requests_changes_nothing() -> None:
    many = [(a_gang(gpu=1 + each % 8, rdma=each % 3, pods=1 + each // 8), 1) for each in range(90)]
    places = [node_of_first(a_case(ONE, recent=tuple(each))) for each in (many, many[::-1])]
    assert places[0] == places[1]


def test_nothing_is_typical_of_a_fleet_without_nodes() -> None:
    assert not state(a_case(recent=())).typical()
    empty = replace(a_case(ONE, FOUR), fleet=fleet_of((), {}, is_complete=True))
    assert plan_cycle(empty, FRAGMENTATION, now_us=1, budget=9).admits == ()
    nobody = replace(empty, waiting=a_waiting_list([]))
    assert plan_cycle(nobody, FRAGMENTATION, now_us=1, budget=9).admits == ()
