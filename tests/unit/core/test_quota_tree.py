"""Quota: what is available where, and which node stands in the way."""

import pytest

from gateway.core.queues.definitions import Cohort, Queue, Quota
from gateway.core.queues.limits import raises_needed, shortages
from gateway.core.queues.tree import QuotaTree, borrowed, node_available
from gateway.core.vocabulary import UNLIMITED
from gateway.errors import InvalidInput
from tests.builders import a_quota

GPU = ("default", "gpu")
CPU = ("default", "cpu")


def two_queues(research: Quota, product: Quota) -> QuotaTree:
    """Give a cohort of two queues."""
    return QuotaTree(
        (
            Queue(name="research", cohort="lab", quotas=(research,)),
            Queue(name="product", cohort="lab", quotas=(product,)),
        ),
        (Cohort(name="lab"),),
    )


def test_a_queue_alone_has_its_nominal_quota() -> None:
    tree = QuotaTree((Queue(name="solo", quotas=(a_quota(8),)),), ())
    tree.charge("solo", GPU, 3)
    assert tree.available("solo", GPU) == 5
    assert tree.potential("solo", GPU) == 8


def test_unused_quota_is_lent_to_the_cohort() -> None:
    tree = two_queues(a_quota(4), a_quota(8))
    assert tree.available("research", GPU) == 12
    tree.charge("product", GPU, 6)
    assert tree.available("research", GPU) == 6


def test_a_borrowing_limit_caps_what_comes_from_others() -> None:
    tree = two_queues(a_quota(4, borrowing=2), a_quota(8))
    assert tree.available("research", GPU) == 6
    tree.charge("research", GPU, 5)
    assert tree.available("research", GPU) == 1
    assert tree.potential("research", GPU) == 6


def test_a_lending_limit_keeps_quota_for_its_owner() -> None:
    tree = two_queues(a_quota(4), a_quota(8, lending=3))
    assert tree.available("research", GPU) == 7
    assert tree.available("product", GPU) == 12
    tree.charge("research", GPU, 7)
    assert tree.available("product", GPU) == 5
    tree.charge("product", GPU, 5)
    assert tree.available("product", GPU) == 0
    assert borrowed(tree.queues["research"], GPU) == 3


def test_usage_passes_upwards_only_beyond_what_a_child_keeps() -> None:
    tree = two_queues(a_quota(4), a_quota(8, lending=3))
    tree.charge("product", GPU, 6)
    assert tree.cohorts["lab"].used[GPU] == 1
    tree.refund("product", GPU, 6)
    assert tree.cohorts["lab"].used[GPU] == 0


def test_a_cut_below_the_use_gives_negative_availability() -> None:
    tree = QuotaTree((Queue(name="solo", quotas=(a_quota(2),)),), ())
    tree.charge("solo", GPU, 6)
    assert tree.available("solo", GPU) == -4
    (short,) = shortages(tree, "solo", {GPU: 3})
    assert short.missing == 7
    assert not short.is_borrowing_limit


def test_a_pair_without_a_row_in_a_counted_root_is_nominal_zero() -> None:
    tree = QuotaTree(
        (Queue(name="poor", cohort="lab"), Queue(name="rich", cohort="lab", quotas=(a_quota(4),))),
        (Cohort(name="lab"),),
    )
    assert tree.is_counted("poor", GPU)
    assert tree.queues["poor"].nominal(GPU) == 0
    assert tree.available("poor", GPU) == 4


def test_a_pair_listed_nowhere_in_the_root_is_not_counted() -> None:
    tree = QuotaTree((Queue(name="solo", quotas=(a_quota(4),)), Queue(name="free")), ())
    assert tree.counted("solo", {CPU: 9, GPU: 1}) == {GPU: 1}
    assert tree.counted("free", {GPU: 9}) == {}
    assert tree.has_room("free", {GPU: 10**9})
    tree.charge("free", GPU, 5)
    assert tree.queues["free"].used == {}


def test_cohorts_lend_to_each_other_through_their_parent() -> None:
    tree = QuotaTree(
        (
            Queue(name="a", cohort="left", quotas=(a_quota(4),)),
            Queue(name="b", cohort="right", quotas=(a_quota(4),)),
        ),
        (
            Cohort(name="left", parent="top", quotas=(a_quota(2, borrowing=1),)),
            Cohort(name="right", parent="top"),
            Cohort(name="top"),
        ),
    )
    assert tree.available("a", GPU) == 7
    assert tree.available("b", GPU) == 10
    assert [node.name for node in tree.path("a")] == ["a", "left", "top"]
    tree.charge("a", GPU, 7)
    assert node_available(tree.cohorts["top"], GPU) == 3


def test_unlimited_quota_stays_unlimited() -> None:
    tree = two_queues(a_quota(UNLIMITED), a_quota(UNLIMITED))
    assert tree.cohorts["lab"].subtree[GPU] == UNLIMITED
    assert tree.has_room("research", {GPU: 10**12})


def test_an_unknown_cohort_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InvalidInput) as caught:
        QuotaTree((Queue(name="q", cohort="nowhere"),), (Cohort(name="lab"),))
    assert caught.value.value == "nowhere"
    assert caught.value.allowed == ("lab",)


def test_a_circle_of_cohorts_is_refused() -> None:
    with pytest.raises(InvalidInput, match="own ancestor"):
        QuotaTree((), (Cohort(name="a", parent="b"), Cohort(name="b", parent="a")))


def test_the_binding_borrowing_limit_is_named_with_what_it_lacks() -> None:
    tree = two_queues(a_quota(4, borrowing=2), a_quota(8))
    (short,) = shortages(tree, "research", {GPU: 10})
    assert (short.node, short.is_borrowing_limit, short.missing) == ("research", True, 4)
    assert (short.requested, short.available) == (10, 6)


def test_an_exhausted_root_is_named_with_what_it_lacks() -> None:
    tree = two_queues(a_quota(4), a_quota(8, lending=6))
    tree.charge("product", GPU, 6)
    (short,) = shortages(tree, "research", {GPU: 9})
    assert (short.node, short.is_borrowing_limit, short.missing) == ("lab", False, 3)


def test_raises_are_found_one_above_the_other() -> None:
    tree = two_queues(a_quota(4, borrowing=2), a_quota(8))
    raises = raises_needed(tree, "research", {GPU: 15})
    assert [(r.node, r.is_borrowing_limit, r.missing) for r in raises] == [
        ("research", True, 9),
        ("lab", False, 3),
    ]
    assert tree.available("research", GPU) == 15
