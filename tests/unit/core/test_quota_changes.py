"""The quota tree over time: lending limits, protection for lenders, going back, new definitions."""

import pytest

from gateway.core.queues.definitions import Cohort, Queue, Quota
from gateway.core.queues.limits import shortages
from gateway.core.queues.tree import QuotaTree, node_available, node_potential
from gateway.core.vocabulary import UNLIMITED, Reason
from tests.builders import a_quota

GPU = ("default", "gpu")
CPU = ("default", "cpu")


def lender_and_borrower(lender: Quota) -> QuotaTree:
    return QuotaTree(
        (
            Queue(name="lender", cohort="lab", quotas=(lender,)),
            Queue(name="borrower", cohort="lab", quotas=(a_quota(0),)),
        ),
        (Cohort(name="lab"),),
    )


@pytest.mark.parametrize("inner", ["lab", "team"])
def test_a_lending_limit_holds_through_any_number_of_levels(inner: str) -> None:
    """A lender of 10 that lends 3; a borrower whose 5 are full."""
    cohorts = (Cohort(name="lab"), Cohort(name="team", parent="lab"))
    queues = (
        Queue(name="lender", cohort=inner, quotas=(a_quota(10, lending=3),)),
        Queue(name="borrower", cohort="lab", quotas=(a_quota(5),)),
    )
    tree = QuotaTree(queues, cohorts, [("borrower", GPU, 5)])
    (short,) = shortages(tree, "borrower", {GPU: 4})
    assert (short.missing, short.reason, short.limit) == (1, Reason.OVER_QUOTA, "quota")
    assert tree.has_room("borrower", {GPU: 3})


def test_a_cohort_keeps_what_it_does_not_lend_for_its_own_queues() -> None:
    cohorts = (
        Cohort(name="top"),
        Cohort(name="team", parent="top", quotas=(a_quota(8, lending=2),)),
    )
    queues = (Queue(name="own", cohort="team"), Queue(name="other", cohort="top"))
    tree = QuotaTree(queues, cohorts)
    assert (tree.available("own", GPU), tree.available("other", GPU)) == (8, 2)
    tree.charge("own", GPU, 7)
    assert (tree.available("own", GPU), tree.available("other", GPU)) == (1, 1)


def test_a_lender_protects_its_unused_nominal_from_everybody_else() -> None:
    tree = lender_and_borrower(a_quota(2))
    tree.charge("lender", GPU, 1)
    assert tree.has_room("borrower", {GPU: 1})
    tree.protect("lender", {GPU: 2})
    assert not tree.has_room("borrower", {GPU: 1})
    assert tree.available("lender", GPU) == 1
    tree.unprotect("lender")
    assert tree.has_room("borrower", {GPU: 1})


def test_a_protection_is_never_more_than_the_request() -> None:
    tree = lender_and_borrower(a_quota(8))
    tree.protect("lender", {GPU: 3, CPU: 99})
    assert tree.available("borrower", GPU) == 5


def test_a_protection_shrinks_as_its_own_queue_takes_the_nominal() -> None:
    tree = lender_and_borrower(a_quota(8))
    tree.protect("lender", {GPU: 5})
    tree.charge("lender", GPU, 4)
    assert tree.available("borrower", GPU) == 0
    tree.charge("lender", GPU, 3)
    assert tree.available("borrower", GPU) == 0
    assert tree.available("lender", GPU) == 1
    tree.refund("lender", GPU, 7)
    assert tree.available("borrower", GPU) == 3


def test_a_queue_protects_one_request_at_most() -> None:
    tree = lender_and_borrower(a_quota(8))
    tree.protect("lender", {GPU: 5})
    tree.protect("lender", {GPU: 2})
    assert tree.available("borrower", GPU) == 6
    tree.unprotect("lender")
    tree.unprotect("lender")
    assert tree.available("borrower", GPU) == 8


def test_a_borrowing_limit_that_binds_is_told_as_such() -> None:
    tree = QuotaTree(
        (Queue(name="q", cohort="lab", quotas=(a_quota(1, borrowing=2),)),),
        (Cohort(name="lab", quotas=(a_quota(9),)),),
    )
    (short,) = shortages(tree, "q", {GPU: 4})
    assert (short.reason, short.limit) == (Reason.OVER_BORROWING_LIMIT, "borrowing limit")


def test_what_a_node_keeps_anyway_needs_no_protection() -> None:
    tree = lender_and_borrower(a_quota(8, lending=3))
    tree.protect("lender", {GPU: 5})
    assert tree.available("borrower", GPU) == 3
    tree.protect("lender", {GPU: 6})
    assert tree.available("borrower", GPU) == 2


def test_a_shortage_is_told_by_use_not_by_protection() -> None:
    tree = lender_and_borrower(a_quota(4))
    tree.protect("lender", {GPU: 4})
    assert not tree.has_room("borrower", {GPU: 4})
    assert shortages(tree, "borrower", {GPU: 4}) == ()
    assert node_available(tree.queues["borrower"], GPU) == 4


def test_going_back_undoes_charges_refunds_and_protections_as_often_as_wanted() -> None:
    tree = lender_and_borrower(a_quota(8, lending=3))
    tree.charge("lender", GPU, 2)
    mark = tree.mark()
    for _ in range(2):
        tree.charge("borrower", GPU, 3)
        tree.protect("lender", {GPU: 6})
        tree.refund("lender", GPU, 1)
        tree.charge("borrower", CPU, 9)
        tree.back_to(mark)
        assert sorted(tree.usage()) == [("lender", GPU, 2)]
        assert tree.available("borrower", GPU) == 3


def test_a_mark_ends_when_changes_are_kept() -> None:
    tree = lender_and_borrower(a_quota(8))
    tree.mark()
    tree.charge("lender", GPU, 2)
    late = tree.mark()
    tree.keep()
    with pytest.raises(ValueError, match="mark 1"):
        tree.back_to(late)
    tree.mark()
    with pytest.raises(ValueError, match="mark 1"):
        tree.back_to(late)
    assert tree.available("lender", GPU) == 6


def test_a_refund_after_a_cut_of_the_lending_limit_equals_a_tree_built_anew() -> None:
    """Under the old tree the cohort counted all five, under the new one only two of them."""
    before = lender_and_borrower(a_quota(8))
    before.charge("lender", GPU, 5)
    assert before.cohorts["lab"].used[GPU] == 5
    after = before.with_definitions(
        (
            Queue(name="lender", cohort="lab", quotas=(a_quota(8, lending=5),)),
            Queue(name="borrower", cohort="lab"),
        ),
        (Cohort(name="lab"),),
    )
    assert after.cohorts["lab"].used[GPU] == 2
    after.refund("lender", GPU, 5)
    assert after.cohorts["lab"].used[GPU] == 0
    assert after.available("borrower", GPU) == 5


def test_use_of_what_no_definition_names_is_remembered_for_one_that_will() -> None:
    solo = Queue(name="solo", quotas=(a_quota(4),))
    tree = QuotaTree((solo,), (), [("gone", GPU, 3), ("solo", CPU, 2), ("solo", GPU, 1)])
    tree.charge("gone", GPU, 1)
    tree.charge("solo", CPU, 5)
    tree.refund("solo", CPU, 1)
    assert tree.available("solo", GPU) == 3
    cpu = Quota(flavor="default", resource="cpu", nominal=8)
    later = tree.with_definitions(
        (Queue(name="solo", quotas=(a_quota(4), cpu)), Queue(name="gone", quotas=(a_quota(9),))), ()
    )
    assert later.available("solo", CPU) == 2
    assert later.available("gone", GPU) == 5
    later.refund("gone", GPU, 4)
    later.refund("solo", CPU, 6)
    assert list(later.usage()) == [("solo", GPU, 1)]


def test_a_pair_that_is_not_counted_has_nothing_available_and_no_limit() -> None:
    tree = lender_and_borrower(a_quota(8))
    lab = tree.cohorts["lab"]
    assert tree.available("lender", CPU) == 0
    assert (node_available(lab, CPU), node_potential(lab, CPU)) == (0, 0)
    assert (lab.nominal(CPU), lab.kept(CPU), lab.borrowing_limit(CPU)) == (0, 0, UNLIMITED)
    assert tree.root_of("lender") is lab
