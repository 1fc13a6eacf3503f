"""What people see of the quota tree: shares as the contest has them, and what weights give."""

import pytest
from hypothesis import given

from gateway.core.queues.definitions import Cohort, Queue
from gateway.core.queues.overview import NodeStanding, PairStanding, overview
from gateway.core.queues.share import share_after
from gateway.core.queues.tree import QuotaTree
from tests.builders import a_quota
from tests.properties.strategies import Dice, a_random_tree, seeds

GPU = ("default", "gpu")


def a_tree(*used: tuple[str, int]) -> QuotaTree:
    """Give a cohort of 12 GPUs of its own with queues of 4 each and weights 1 and 3."""
    queues = (
        Queue(name="one", cohort="lab", weight=1, quotas=(a_quota(4),)),
        Queue(name="three", cohort="lab", weight=3, quotas=(a_quota(4, lending=1),)),
        Queue(name="alone", quotas=(a_quota(2),)),
    )
    cohorts = (Cohort(name="lab", quotas=(a_quota(12),)),)
    return QuotaTree(queues, cohorts, [(name, GPU, amount) for name, amount in used])


def nodes(*used: tuple[str, int]) -> dict[str, NodeStanding]:
    return {node.name: node for node in overview(a_tree(*used))}


def row(node: NodeStanding) -> PairStanding:
    (only,) = node.rows
    return only


def test_parents_come_before_their_children_and_siblings_by_name() -> None:
    told = [(node.name, node.depth, node.parent) for node in overview(a_tree())]
    assert told == [("alone", 0, None), ("lab", 0, None), ("one", 1, "lab"), ("three", 1, "lab")]
    assert [node.name for node in overview(a_tree(), "three")] == ["lab", "one", "three"]


def test_weights_divide_what_the_cohort_can_lend() -> None:
    found = nodes()
    # 12 of the cohort, 4 of the one queue, and 1 that the other one lends; it keeps 3.
    assert row(found["lab"]).subtree == 17
    assert row(found["one"]).entitlement == 17 // 4
    assert row(found["three"]).entitlement == 3 + 17 * 3 // 4
    assert row(found["alone"]).entitlement == 2


def test_use_beyond_the_own_quota_is_borrowed_and_makes_the_share() -> None:
    found = nodes(("one", 6), ("three", 4))
    assert (row(found["one"]).used, row(found["one"]).borrowed) == (6, 2)
    assert (found["one"].share, found["one"].resource) == (2 / 17, "gpu")
    assert (found["three"].share, found["three"].resource) == (0.0, "")
    assert row(found["one"]).available == 10
    assert (found["lab"].share, found["lab"].resource) == (7 / 17, "gpu")


def test_a_weight_of_nothing_gives_nothing() -> None:
    queues = (
        Queue(name="none", cohort="lab", weight=0, quotas=(a_quota(0),)),
        Queue(name="all", cohort="lab", quotas=(a_quota(8),)),
    )
    tree = QuotaTree(queues, (Cohort(name="lab"),), [("none", GPU, 2)])
    found = {node.name: node for node in overview(tree)}
    assert (row(found["none"]).entitlement, row(found["all"]).entitlement) == (0, 8)
    assert found["none"].share == 0.25


def test_what_has_no_limit_is_told_as_none() -> None:
    queues = (Queue(name="free", cohort="lab", quotas=(a_quota(2**62),)),)
    found = {node.name: node for node in overview(QuotaTree(queues, (Cohort(name="lab"),)))}
    assert row(found["free"]) == PairStanding(
        pair=GPU,
        nominal=2**62,
        subtree=None,
        used=0,
        borrowed=0,
        available=None,
        entitlement=None,
    )


@given(seeds)
def test_the_share_told_is_the_one_that_siblings_compete_by(seed: int) -> None:
    dice = Dice(seed)
    queues, cohorts = a_random_tree(dice, 4, 3)
    use = [
        (queue.name, (dice.pick(["small", "large"]), "gpu"), dice.number(0, 9)) for queue in queues
    ]
    tree = QuotaTree(queues, cohorts, use)
    for node in overview(tree):
        found = (tree.queues if node.is_queue else tree.cohorts)[node.name]
        exact = share_after(found, {}, tree.share_bits) / 2**tree.share_bits
        assert node.share == pytest.approx(exact, abs=2 / 2**tree.share_bits)
