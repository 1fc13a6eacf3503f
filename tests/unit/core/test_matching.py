"""Node labels, affinity and taints, judged as kube-scheduler judges them."""

import pytest

from gateway.core.devices.matching import (
    matches_affinity,
    matches_labels,
    meets,
    tolerates,
    untolerated,
)
from gateway.core.resources.node_rules import Requirement, Taint, Toleration

LABELS = {"zone": "a", "gpus": "8", "name": "node-1"}


def needs(key: str, operator: str, *values: str) -> Requirement:
    return Requirement(key=key, operator=operator, values=values)


@pytest.mark.parametrize(
    ("requirement", "holds"),
    [
        (needs("zone", "In", "a", "b"), True),
        (needs("zone", "In", "b"), False),
        (needs("rack", "In", "a"), False),
        (needs("zone", "NotIn", "b"), True),
        (needs("zone", "NotIn", "a"), False),
        (needs("rack", "NotIn", "a"), True),  # an absent label is not in any list
        (needs("zone", "Exists"), True),
        (needs("rack", "Exists"), False),
        (needs("rack", "DoesNotExist"), True),
        (needs("zone", "DoesNotExist"), False),
        (needs("gpus", "Gt", "4"), True),
        (needs("gpus", "Gt", "8"), False),
        (needs("gpus", "Lt", "9"), True),
        (needs("gpus", "Lt", "8"), False),
        (needs("name", "Gt", "1"), False),  # not a number
        (needs("rack", "Lt", "1"), False),
        (needs("gpus", "Gt"), False),
    ],
)
def test_a_requirement_holds_as_in_kubernetes(requirement: Requirement, *, holds: bool) -> None:
    assert meets(LABELS, requirement) is holds


def test_terms_are_alternatives_and_their_requirements_add_up() -> None:
    far, near = (needs("zone", "In", "b"),), (needs("zone", "In", "a"), needs("gpus", "Gt", "4"))
    assert matches_affinity(LABELS, (far, near))
    assert not matches_affinity(LABELS, (far, (*near, needs("rack", "Exists"))))
    assert matches_affinity(LABELS, ())


def test_an_empty_term_matches_no_node() -> None:
    assert not matches_affinity(LABELS, ((),))


def test_all_selector_labels_must_match() -> None:
    assert matches_labels(LABELS, (("zone", "a"), ("gpus", "8")))
    assert not matches_labels(LABELS, (("zone", "a"), ("gpus", "4")))


GPU_TAINT = Taint(key="gpu", value="reserved")


@pytest.mark.parametrize(
    ("toleration", "covers"),
    [
        (Toleration(key="gpu", value="reserved"), True),
        (Toleration(key="gpu", value="other"), False),
        (Toleration(key="gpu", operator="Exists"), True),
        (Toleration(key="rack", operator="Exists"), False),
        (Toleration(operator="Exists"), True),
        (Toleration(key="gpu", value="reserved", effect="NoSchedule"), True),
        (Toleration(key="gpu", value="reserved", effect="NoExecute"), False),
    ],
)
def test_a_toleration_covers_a_taint_as_in_kubernetes(
    toleration: Toleration, *, covers: bool
) -> None:
    assert tolerates(toleration, GPU_TAINT) is covers


def test_only_blocking_taints_keep_pods_away() -> None:
    soft = Taint(key="gpu", effect="PreferNoSchedule")
    assert untolerated((soft,), ()) is None
    assert untolerated((soft, GPU_TAINT), ()) is GPU_TAINT
    assert untolerated((GPU_TAINT,), (Toleration(operator="Exists"),)) is None
