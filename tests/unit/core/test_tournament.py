"""Whose head comes next across queues."""

from dataclasses import replace

from gateway.core.policies.fairness import Candidate, Tournament
from gateway.core.queues.definitions import Cohort, Queue, Quota
from gateway.core.queues.tree import Pair, QuotaTree
from tests.builders import a_quota

GPU = ("default", "gpu")
CPU = ("default", "cpu")


def tree_of_two(left_weight: int = 1, right_weight: int = 1) -> QuotaTree:
    return QuotaTree(
        (
            Queue(name="left", cohort="lab", weight=left_weight, quotas=(a_quota(4),)),
            Queue(name="right", cohort="lab", weight=right_weight, quotas=(a_quota(4),)),
        ),
        (Cohort(name="lab"),),
    )


def a_head(queue: str, amount: int, submitted: int = 1, rank: int = 0) -> Candidate:
    return Candidate(queue=queue, row=0, submitted_us=submitted, charges={GPU: amount}, rank=rank)


def order(tree: QuotaTree, *heads: Candidate) -> list[str]:
    """Give the queues in which heads win, each leaving without being charged."""
    tournament = Tournament(tree)
    for head in heads:
        tournament.put(head)
    names = []
    while (winner := tournament.best()) is not None:
        names.append(winner.queue)
        tournament.withdraw(winner.queue)
    return names


def admitted(tree: QuotaTree, *heads: Candidate) -> list[str]:
    """Give the queues whose heads are admitted, in order; who has no room leaves."""
    tournament = Tournament(tree)
    for head in heads:
        tournament.put(head)
    names = []
    while (winner := tournament.best()) is not None:
        if tree.has_room(winner.queue, winner.charges):
            tree.charge(winner.queue, GPU, winner.charges[GPU])
            tournament.refresh(winner.queue)
            names.append(winner.queue)
        tournament.withdraw(winner.queue)
    return names


def test_nobody_wins_where_nobody_competes() -> None:
    tournament = Tournament(tree_of_two())
    assert tournament.best() is None
    tournament.withdraw("left")
    tournament.refresh("right")
    assert tournament.best() is None


def test_the_winner_stays_until_it_is_withdrawn_or_replaced() -> None:
    tournament = Tournament(tree_of_two())
    tournament.put(a_head("left", 2))
    assert tournament.best() == tournament.best() == a_head("left", 2)
    tournament.put(a_head("left", 3))
    assert tournament.best() == a_head("left", 3)


def test_who_does_not_borrow_comes_first() -> None:
    heads = a_head("left", 5), a_head("right", 4, submitted=9, rank=-1)
    assert order(tree_of_two(), *heads) == ["right", "left"]


def test_who_does_not_borrow_for_this_request_comes_first_even_with_the_larger_share() -> None:
    cpu = replace(a_quota(4), resource="cpu")
    queues = tuple(
        Queue(name=name, cohort="lab", quotas=(a_quota(4), cpu)) for name in ("left", "right")
    )
    tree = QuotaTree(queues, (Cohort(name="lab"),))
    tree.charge("right", CPU, 8)
    assert order(tree, a_head("left", 5), a_head("right", 4, submitted=9))[0] == "right"


def test_the_lower_share_comes_first() -> None:
    heads = a_head("left", 6), a_head("right", 5, submitted=9)
    assert order(tree_of_two(), *heads)[0] == "right"
    assert order(tree_of_two(4), *heads)[0] == "left"


def test_with_equal_shares_the_higher_class_comes_first_then_the_older_then_the_name() -> None:
    tree = tree_of_two()
    assert order(tree, a_head("left", 2), a_head("right", 2, 9, rank=1))[0] == "right"
    assert order(tree, a_head("left", 2, 5), a_head("right", 2))[0] == "right"
    assert order(tree, a_head("left", 2), a_head("right", 2))[0] == "left"


def test_of_a_queue_and_a_cohort_alike_in_all_and_name_the_queue_comes_first() -> None:
    queues = (
        Queue(name="deep", cohort="twin"),
        Queue(name="twin", cohort="lab"),
    )
    cohorts = (
        Cohort(name="twin", parent="lab"),
        Cohort(name="lab", quotas=(a_quota(9),)),
    )
    heads = a_head("deep", 2), a_head("twin", 2)
    assert order(QuotaTree(queues, cohorts), *heads) == ["twin", "deep"]


def test_roots_compare_by_the_use_of_their_own_quota_over_their_weight() -> None:
    def tree(weight: int) -> QuotaTree:
        queues = (
            Queue(name="big", quotas=(a_quota(100),)),
            Queue(name="small", weight=weight, quotas=(a_quota(4),)),
        )
        return QuotaTree(queues, ())

    heads = a_head("small", 2), a_head("big", 10, submitted=9)
    assert order(tree(1), *heads) == ["big", "small"]
    assert order(tree(6), *heads) == ["small", "big"]


def test_a_cohort_without_a_head_does_not_compete() -> None:
    assert order(tree_of_two(), a_head("right", 99)) == ["right"]


def test_of_two_infinite_shares_the_smaller_unweighted_one_comes_first() -> None:
    heads = a_head("left", 6), a_head("right", 5, submitted=9)
    assert order(tree_of_two(0, 0), *heads) == ["right", "left"]
    # Any finite share is lower, whatever its size.
    assert order(tree_of_two(1, 0), a_head("left", 8), a_head("right", 5)) == ["left", "right"]


def test_a_charge_lowers_the_chances_of_its_whole_path() -> None:
    queues = tuple(Queue(name=name, cohort=name[0]) for name in ("a1", "a2", "b1"))
    cohorts = (
        Cohort(name="a", parent="lab"),
        Cohort(name="b", parent="lab"),
        Cohort(name="lab", quotas=(a_quota(9),)),
    )
    tree = QuotaTree(queues, cohorts)
    heads = a_head("a1", 1), a_head("a2", 1), a_head("b1", 1, submitted=9)
    assert admitted(tree, *heads) == ["a1", "b1", "a2"]


def test_deep_trees_weigh_branches_against_each_other() -> None:
    """A has weight 101, B 99, quota stands in a third branch only; one unit is in use by B."""

    def tree(a_weight: int) -> QuotaTree:
        cohorts = (
            Cohort(name="top"),
            Cohort(name="A", parent="top", weight=a_weight),
            Cohort(name="B", parent="top", weight=99),
            Cohort(name="store", parent="top", quotas=(a_quota(1),)),
            Cohort(name="a-inner", parent="A"),
            Cohort(name="b-inner", parent="B"),
        )
        queues = (Queue(name="qa", cohort="a-inner"), Queue(name="qb", cohort="b-inner"))
        return QuotaTree(queues, cohorts)

    heads = a_head("qb", 1), a_head("qa", 1, submitted=9)
    assert admitted(tree(101), *heads) == ["qa"]
    assert admitted(tree(99), *heads) == ["qb"]


def test_the_better_child_of_a_cohort_plays_for_it_and_the_rest_no_longer_fits() -> None:
    """200 at the root; d 10 and e 20 in use below B, g 100 below C; heads d 70, e 61, f 1, g 1."""
    queues = tuple(Queue(name=n, cohort=c) for n, c in zip("defg", "BBCC", strict=True))
    cohorts = (
        Cohort(name="root", quotas=(a_quota(200),)),
        Cohort(name="B", parent="root"),
        Cohort(name="C", parent="root"),
    )
    usage = [("d", GPU, 10), ("e", GPU, 20), ("g", GPU, 100)]
    tree = QuotaTree(queues, cohorts, usage)
    heads = a_head("d", 70), a_head("e", 61), a_head("f", 1), a_head("g", 1)
    assert admitted(tree, *heads) == ["d"]


def test_a_queue_within_its_nominal_beats_an_older_one_that_borrows() -> None:
    """A borrows heavily elsewhere, but not for this request; there is room for one."""
    queues = (
        Queue(name="a", cohort="lab", quotas=(a_quota(2), replace(a_quota(0), resource="cpu"))),
        Queue(name="b", cohort="lab"),
    )
    rest = Cohort(name="lab", quotas=(replace(a_quota(50), resource="cpu"),))
    tree = QuotaTree(queues, (rest,), [("a", CPU, 40)])
    assert admitted(tree, a_head("b", 2), a_head("a", 2, submitted=9)) == ["a"]


def test_of_two_queues_of_weight_zero_the_one_that_uses_nothing_comes_first() -> None:
    queues = (Queue(name="a", cohort="lab", weight=0), Queue(name="b", cohort="lab", weight=0))
    tree = QuotaTree(queues, (Cohort(name="lab", quotas=(a_quota(5),)),), [("b", GPU, 4)])
    assert admitted(tree, a_head("b", 1, rank=9001), a_head("a", 1, submitted=9)) == ["a"]


def two_in_a_pool(pool: int) -> QuotaTree:
    queues = (Queue(name="a", cohort="lab"), Queue(name="b", cohort="lab"))
    return QuotaTree(queues, (Cohort(name="lab", quotas=(a_quota(pool),)),))


def test_two_heads_pass_together_up_to_the_last_unit() -> None:
    assert admitted(two_in_a_pool(100), a_head("a", 45), a_head("b", 56)) == ["a"]
    assert admitted(two_in_a_pool(100), a_head("a", 45), a_head("b", 55)) == ["a", "b"]


def test_of_two_heads_that_exclude_each_other_the_higher_class_is_admitted() -> None:
    """Three queues of 10 each, at most 10 borrowed; one uses 10, two ask 16."""
    row = a_quota(10, borrowing=10)
    queues = tuple(Queue(name=name, cohort="lab", quotas=(row,)) for name in "abc")
    tree = QuotaTree(queues, (Cohort(name="lab"),))
    heads = a_head("a", 16), a_head("b", 16, submitted=9, rank=1)
    assert admitted(tree, *heads) == ["b"]


def of_several(pairs: dict[Pair, int]) -> tuple[Quota, ...]:
    return tuple(Quota(flavor=f, resource=r, nominal=n) for (f, r), n in pairs.items())


def test_the_share_after_admission_counts_all_a_queue_uses_not_only_what_it_asks() -> None:
    queues = (Queue(name="a", cohort="lab"), Queue(name="b", cohort="lab"))
    cohort = Cohort(name="lab", quotas=of_several({GPU: 10, CPU: 10}))
    tree = QuotaTree(queues, (cohort,), [("a", CPU, 5)])
    assert order(tree, a_head("a", 1), a_head("b", 4, submitted=9)) == ["b", "a"]
