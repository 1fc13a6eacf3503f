"""Eligibility by columns against a judgement node by node, before and after changes."""

from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.core.placing.eligibility import Eligibility
from tests.builders import a_fleet
from tests.properties.placing_strategies import (
    FLAVORS,
    a_labelled_node,
    a_ruled_pod_set,
    changed_node,
)
from tests.properties.plain_eligibility import plain_refusals
from tests.properties.strategies import Dice, seeds

usual = settings(max_examples=150, deadline=None)


@given(seeds, st.integers(1, 6))
@usual
def test_nodes_are_judged_as_one_by_one_before_and_after_changes(seed: int, count: int) -> None:
    dice = Dice(seed)
    drawn = [a_labelled_node(dice, node_id) for node_id in range(count)]
    pod_sets = [a_ruled_pod_set(dice) for _ in range(3)]
    fleet = a_fleet([node for node, _ in drawn])
    eligibility = Eligibility(fleet, FLAVORS)
    for _ in range(3):
        for pod_set in pod_sets:
            for flavor in FLAVORS:
                expected = plain_refusals(fleet, FLAVORS, pod_set, flavor)
                assert eligibility.refusals(pod_set, flavor) == expected
                assert eligibility.nodes(pod_set, flavor).tolist() == [not e for e in expected]
        rows = [row for row in range(count) if dice.happens(40)]
        for row in rows:
            node, devices = drawn[row]
            drawn[row] = changed_node(dice, node, devices), devices
        fleet = a_fleet([node for node, _ in drawn])
        eligibility.sync(fleet, rows)


@given(seeds)
@usual
def test_masks_stay_the_same_objects_while_labels_and_taints_stay(seed: int) -> None:
    dice = Dice(seed)
    drawn = [a_labelled_node(dice, node_id) for node_id in range(3)]
    pod_set, flavor = a_ruled_pod_set(dice), dice.pick(FLAVORS)
    eligibility = Eligibility(a_fleet([node for node, _ in drawn]), FLAVORS)
    mask = eligibility.nodes(pod_set, flavor)
    busy = [node._replace(free={"cpu": 0, "memory": 0, "pods": 0}) for node, _ in drawn]
    eligibility.sync(a_fleet(busy), range(3))
    assert eligibility.nodes(pod_set, flavor) is mask
