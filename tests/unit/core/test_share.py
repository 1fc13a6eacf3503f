"""Fair share: exact, borrowed amounts only, weighted."""

from dataclasses import replace

from gateway.core.policies.fairness import Candidate, dominant_share_first
from gateway.core.queues.definitions import Cohort, Queue
from gateway.core.queues.share import NO_SHARE, Share, borrows, dominant_share, root_share
from gateway.core.queues.tree import QuotaTree
from tests.builders import a_quota

GPU = ("default", "gpu")


def tree_of_two(left_weight: int = 1, right_weight: int = 1) -> QuotaTree:
    return QuotaTree(
        (
            Queue(name="left", cohort="lab", weight=left_weight, quotas=(a_quota(4),)),
            Queue(name="right", cohort="lab", weight=right_weight, quotas=(a_quota(4),)),
        ),
        (Cohort(name="lab"),),
    )


def test_shares_compare_exactly() -> None:
    assert Share(1, 3) == Share(2, 6)
    assert hash(Share(1, 3)) == hash(Share(2, 6))
    assert Share(1, 3) < Share(34, 100)
    assert not Share(1, 3) < Share(1, 3)
    assert Share(1, 2) != Share(1, 2, is_infinite=True)
    assert Share(10**20, 1) < Share(1, 10**20, is_infinite=True)
    assert Share(1, 3) != "a third"


def test_use_within_the_own_quota_is_no_share() -> None:
    tree = tree_of_two()
    tree.charge("left", GPU, 4)
    assert dominant_share(tree.queues["left"], {}) == NO_SHARE
    assert dominant_share(tree.queues["left"], {GPU: 2}) == Share(2, 8)


def test_a_share_is_divided_by_the_weight() -> None:
    tree = tree_of_two(left_weight=4)
    assert dominant_share(tree.queues["left"], {GPU: 8}) == Share(4, 32)


def test_weight_zero_comes_after_everybody_once_it_borrows() -> None:
    tree = tree_of_two(left_weight=0)
    assert dominant_share(tree.queues["left"], {GPU: 4}) == NO_SHARE
    assert dominant_share(tree.queues["left"], {GPU: 5}).is_infinite


def test_a_root_has_no_share_of_a_parent_but_a_use_of_its_own() -> None:
    tree = tree_of_two()
    tree.charge("left", GPU, 4)
    assert dominant_share(tree.cohorts["lab"], {GPU: 99}) == NO_SHARE
    assert root_share(tree.cohorts["lab"], {GPU: 2}) == Share(6, 8)
    assert not borrows(tree.cohorts["lab"], {GPU: 99})


def test_a_resource_nobody_can_lend_gives_no_ratio_but_counts_as_borrowing() -> None:
    queues = (Queue(name="q", cohort="lab", quotas=(a_quota(0),)),)
    tree = QuotaTree(queues, (Cohort(name="lab"),))
    assert dominant_share(tree.queues["q"], {GPU: 1}) == NO_SHARE
    assert borrows(tree.queues["q"], {GPU: 1})
    assert root_share(tree.cohorts["lab"], {GPU: 1}) == NO_SHARE


def a_head(queue: str, gpus: int, submitted: int = 1) -> Candidate:
    return Candidate(queue=queue, row=0, submitted_us=submitted, charges={GPU: gpus})


def winner(tree: QuotaTree, *heads: Candidate) -> str:
    return dominant_share_first(tree, {head.queue: head for head in heads}).queue


def test_who_does_not_borrow_comes_first() -> None:
    assert winner(tree_of_two(), a_head("left", 5), a_head("right", 4, submitted=9)) == "right"


def test_who_does_not_borrow_for_this_request_comes_first_even_with_the_larger_share() -> None:
    cpu = replace(a_quota(4), resource="cpu")
    queues = tuple(
        Queue(name=name, cohort="lab", quotas=(a_quota(4), cpu)) for name in ("left", "right")
    )
    tree = QuotaTree(queues, (Cohort(name="lab"),))
    tree.charge("right", ("default", "cpu"), 8)
    assert winner(tree, a_head("left", 5), a_head("right", 4, submitted=9)) == "right"


def test_the_lower_share_comes_first() -> None:
    assert winner(tree_of_two(), a_head("left", 6), a_head("right", 5, submitted=9)) == "right"
    assert winner(tree_of_two(4), a_head("left", 6), a_head("right", 5, submitted=9)) == "left"


def test_with_equal_shares_the_older_comes_first_then_the_name() -> None:
    assert winner(tree_of_two(), a_head("left", 2, submitted=5), a_head("right", 2)) == "right"
    assert winner(tree_of_two(), a_head("left", 2), a_head("right", 2)) == "left"


def test_roots_compare_by_the_use_of_their_own_quota() -> None:
    tree = QuotaTree(
        (Queue(name="big", quotas=(a_quota(100),)), Queue(name="small", quotas=(a_quota(4),))), ()
    )
    assert winner(tree, a_head("small", 2), a_head("big", 10, submitted=9)) == "big"


def test_a_cohort_without_a_head_does_not_compete() -> None:
    assert winner(tree_of_two(), a_head("right", 99)) == "right"


def test_a_share_deep_in_the_tree_is_of_what_its_own_cohort_could_hold() -> None:
    queues = (
        Queue(name="q", cohort="team", quotas=(a_quota(2),)),
        Queue(name="r", cohort="lab", quotas=(a_quota(6),)),
    )
    tree = QuotaTree(queues, (Cohort(name="team", parent="lab"), Cohort(name="lab")))
    assert dominant_share(tree.queues["q"], {GPU: 6}) == Share(4, 8)
    assert dominant_share(tree.queues["q"], {GPU: 4}) == Share(2, 8)
    assert dominant_share(tree.cohorts["team"], {GPU: 4}) == Share(2, 8)
