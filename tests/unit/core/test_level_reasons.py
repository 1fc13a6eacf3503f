"""A gang that its rack keeps out is told so: what room there is, and what would let it start."""

import pytest

from gateway.core.admission import ClassHold, Policies, plan_cycle
from gateway.core.admission.unblock import Lift
from gateway.core.devices.fleet import Fleet
from gateway.core.jobs.request import PodSetRequest, RequestClass
from gateway.core.resources import amounts
from gateway.core.vocabulary import DeviceHealth, LiftKind, PairRule, Reason
from tests.builders import a_fleet, a_node, a_snapshot, a_waiting_list, devices_of


def a_rack_gang(pods: int, *, is_required: bool = True) -> RequestClass:
    workers = PodSetRequest(
        name="Worker",
        count=pods,
        per_pod=amounts({"gpu": 8}),
        pair=PairRule.NONE,
        level="rack",
        is_level_required=is_required,
    )
    return RequestClass(pod_sets=(workers,))


def racks(*names: str, sick: int = 0) -> Fleet:
    """Give a node for each name, in the rack of that name; an empty one is in none."""
    nodes = [
        a_node(
            number,
            labels=(("rack", name),) if name else (),
            health=DeviceHealth.UNHEALTHY if number == sick else DeviceHealth.HEALTHY,
        )
        for number, name in enumerate(names, start=1)
    ]
    return a_fleet(nodes, [each for node in nodes for each in devices_of(node.node_id, nics=0)])


def hold_of(gang: RequestClass, fleet: Fleet) -> ClassHold | None:
    snapshot = a_snapshot(a_waiting_list([(0, gang, 0)]), fleet)
    plan = plan_cycle(snapshot, Policies(), now_us=0, budget=10)
    return plan.class_holds[0] if plan.class_holds else None


def told(gang: RequestClass, fleet: Fleet) -> ClassHold:
    hold = hold_of(gang, fleet)
    assert hold is not None
    return hold


def test_room_in_the_best_rack_is_told() -> None:
    assert told(a_rack_gang(3), racks("a", "a", "b", "")).reason is Reason.NEVER_FITS
    hold = told(a_rack_gang(2), racks("a", "a", "b", "c", sick=1))
    assert hold.reason is Reason.NODES_UNAVAILABLE
    details = [cause.detail for cause in hold.causes]
    assert "room for 1 Worker pod in the best of 3 domains of rack; the gang has 2" in details


@pytest.mark.parametrize(
    ("fleet", "words"),
    [
        (
            racks("a", "a", "b"),
            "no value of rack has room for the whole gang, even when idle: 2 known domains",
        ),
        (
            racks("", "", ""),
            "no known node has the label rack, of which the pods are to share one value",
        ),
    ],
)
def test_a_gang_that_no_rack_could_ever_hold_is_told_so(fleet: Fleet, words: str) -> None:
    hold = told(a_rack_gang(3), fleet)
    assert hold.reason is Reason.NEVER_FITS
    assert [cause.detail for cause in hold.causes] == [words]


def test_what_would_help_is_another_node_or_to_ask_for_less() -> None:
    hold = told(a_rack_gang(2), racks("a", "a", "b", "c", sick=1))
    assert hold.unblock == (
        "accept pods in more than one domain of rack (mode 'preferred')",
        "node-01 to be back in service",
    )
    assert hold.lifts[0] == (Lift(kind=LiftKind.TOPOLOGY, target="rack"),)


def test_a_preferred_level_keeps_nobody_out() -> None:
    assert hold_of(a_rack_gang(2, is_required=False), racks("a", "b")) is None


def test_nodes_without_the_label_are_no_domain() -> None:
    hold = told(a_rack_gang(2), racks("", "", "a", "a", sick=3))
    details = [cause.detail for cause in hold.causes]
    assert "room for 1 Worker pod in the best of 1 domain of rack; the gang has 2" in details
