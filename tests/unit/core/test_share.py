"""Fair share: exact, borrowed amounts only, weighted."""

from fractions import Fraction

import pytest

from gateway.core.queues.definitions import Cohort, Queue, Quota
from gateway.core.queues.share import borrows, share_after
from gateway.core.queues.tree import Pair, QuotaTree, TreeNode
from gateway.core.vocabulary import UNLIMITED
from tests.builders import a_quota

GPU = ("default", "gpu")
CPU = ("default", "cpu")
SPOT = ("spot", "gpu")


def a_row(pair: Pair, nominal: int, borrowing: int = UNLIMITED) -> Quota:
    return Quota(flavor=pair[0], resource=pair[1], nominal=nominal, borrowing_limit=borrowing)


def tree_of_two(left_weight: int = 1, right_weight: int = 1) -> QuotaTree:
    return QuotaTree(
        (
            Queue(name="left", cohort="lab", weight=left_weight, quotas=(a_quota(4),)),
            Queue(name="right", cohort="lab", weight=right_weight, quotas=(a_quota(4),)),
        ),
        (Cohort(name="lab"),),
    )


def share(node: TreeNode, charges: dict[Pair, int] | None = None) -> Fraction:
    """Give the share as the simplest fraction that it can stand for."""
    return Fraction(share_after(node, charges or {}, 64), 2**64).limit_denominator(1000)


def test_use_within_the_own_quota_is_no_share() -> None:
    tree = tree_of_two()
    tree.charge("left", GPU, 4)
    assert share(tree.queues["left"]) == 0
    assert share(tree.queues["left"], {GPU: 2}) == Fraction(2, 8)


def test_a_share_is_divided_by_the_weight() -> None:
    tree = tree_of_two(left_weight=4)
    assert share(tree.queues["left"], {GPU: 8}) == Fraction(4, 32)


def test_a_share_of_weight_zero_is_not_divided() -> None:
    tree = tree_of_two(left_weight=0)
    assert share(tree.queues["left"], {GPU: 4}) == 0
    assert share(tree.queues["left"], {GPU: 5}) == Fraction(1, 8)


def test_a_root_has_nobody_to_borrow_from_but_a_use_of_its_own() -> None:
    tree = tree_of_two()
    tree.charge("left", GPU, 4)
    assert share(tree.cohorts["lab"], {GPU: 2}) == Fraction(6, 8)
    assert not borrows(tree.cohorts["lab"], {GPU: 99})


def test_a_resource_nobody_can_lend_gives_no_share_but_counts_as_borrowing() -> None:
    queues = (Queue(name="q", cohort="lab", quotas=(a_quota(0),)),)
    tree = QuotaTree(queues, (Cohort(name="lab"),))
    assert share(tree.queues["q"], {GPU: 1}) == 0
    assert borrows(tree.queues["q"], {GPU: 1})
    assert share(tree.cohorts["lab"], {GPU: 1}) == 0


def test_a_pair_that_is_not_counted_is_not_borrowed() -> None:
    assert not borrows(tree_of_two().queues["left"], {CPU: 99, GPU: 4})


def test_a_share_deep_in_the_tree_is_of_what_its_own_cohort_could_hold() -> None:
    queues = (
        Queue(name="q", cohort="team", quotas=(a_quota(2),)),
        Queue(name="r", cohort="lab", quotas=(a_quota(6),)),
    )
    tree = QuotaTree(queues, (Cohort(name="team", parent="lab"), Cohort(name="lab")))
    assert share(tree.queues["q"], {GPU: 6}) == Fraction(4, 8)
    assert share(tree.queues["q"], {GPU: 4}) == Fraction(2, 8)
    assert share(tree.cohorts["team"], {GPU: 4}) == Fraction(2, 8)


def of_two_resources(weight: int = 1) -> QuotaTree:
    """Give a queue with 2 CPU and 5 GPU in a cohort that can hold 10 of each, using 3 and 7."""
    mine, rest = (a_row(CPU, 2), a_row(GPU, 5)), (a_row(CPU, 8), a_row(GPU, 5))
    tree = QuotaTree(
        (
            Queue(name="mine", cohort="lab", weight=weight, quotas=mine),
            Queue(name="rest", cohort="lab", quotas=rest),
        ),
        (Cohort(name="lab"),),
    )
    tree.charge("mine", CPU, 3)
    tree.charge("mine", GPU, 7)
    return tree


@pytest.mark.parametrize(("weight", "expected"), [(1, (1, 5)), (2, (1, 10)), (4, (1, 20))])
def test_the_scarcest_resource_dominates(weight: int, expected: tuple[int, int]) -> None:
    tree = of_two_resources(weight)
    assert share(tree.queues["mine"]) == Fraction(*expected)


def test_two_flavors_of_one_resource_are_added_before_dividing() -> None:
    tree = QuotaTree(
        (Queue(name="mine", cohort="lab"),),
        (Cohort(name="lab", quotas=(a_row(GPU, 4), a_row(SPOT, 6))),),
    )
    tree.charge("mine", GPU, 1)
    assert share(tree.queues["mine"], {SPOT: 2}) == Fraction(3, 10)


def test_a_child_cohort_of_weight_two_has_half_the_share() -> None:
    def tree_of(weight: int) -> QuotaTree:
        cohorts = (
            Cohort(name="team", parent="lab", weight=weight),
            Cohort(name="lab", quotas=(a_quota(10),)),
        )
        return QuotaTree((Queue(name="q", cohort="team"),), cohorts)

    plain, heavy = tree_of(1), tree_of(2)
    assert share(plain.cohorts["team"], {GPU: 6}) == Fraction(6, 10)
    assert share(heavy.cohorts["team"], {GPU: 6}) == Fraction(3, 10)


def test_shares_that_differ_in_the_last_place_stay_different() -> None:
    large = 2**50 - 1
    quotas = (a_row(GPU, large),)
    tree = QuotaTree(
        (
            Queue(name="a", cohort="lab", weight=999_983),
            Queue(name="b", cohort="lab", weight=999_982),
        ),
        (Cohort(name="lab", quotas=quotas),),
    )
    a, b = tree.queues["a"], tree.queues["b"]
    bits = tree.share_bits
    # 999983 / 999983 and 999982 / 999982 of 1 are equal, one more of either is not.
    assert share_after(a, {GPU: 999_983}, bits) == share_after(b, {GPU: 999_982}, bits)
    assert share_after(a, {GPU: 999_984}, bits) < share_after(b, {GPU: 999_983}, bits)


def test_unlimited_quota_gives_a_share_of_next_to_nothing() -> None:
    tree = QuotaTree(
        (Queue(name="q", cohort="lab"),), (Cohort(name="lab", quotas=(a_quota(UNLIMITED),)),)
    )
    one, two = ({GPU: amount} for amount in (1, 2))
    bits = tree.share_bits
    assert 0 < share_after(tree.queues["q"], one, bits) < share_after(tree.queues["q"], two, bits)
