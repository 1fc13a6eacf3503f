"""The quota tree against its definition computed from scratch."""

from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.core.queues.limits import raises_needed, shortages
from gateway.core.queues.share import share_after
from gateway.core.queues.tree import Pair, QuotaTree, TreeNode, borrowed, node_available
from gateway.core.vocabulary import UNLIMITED
from tests.properties.strategies import FLAVORS, Tree, trees

usual = settings(max_examples=150, deadline=None)
PAIRS: list[Pair] = [(flavor.name, resource) for flavor in FLAVORS for resource in ("gpu", "cpu")]
charges = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from(PAIRS), st.integers(0, 20)), max_size=8
)
Charges = list[tuple[int, Pair, int]]


def charged(definitions: Tree, wanted: Charges, *, only_what_fits: bool = False) -> QuotaTree:
    tree = QuotaTree(*definitions)
    names = sorted(tree.queues)
    for index, pair, amount in wanted:
        queue = names[index % len(names)]
        if not only_what_fits or tree.has_room(queue, {pair: amount}):
            tree.charge(queue, pair, amount)
    return tree


def every_node(tree: QuotaTree) -> list[TreeNode]:
    return [*tree.queues.values(), *tree.cohorts.values()]


def state(tree: QuotaTree) -> list[dict[Pair, int]]:
    return [{pair: n for pair, n in node.used.items() if n} for node in every_node(tree)]


@given(trees(), charges)
@usual
def test_usage_of_a_cohort_is_what_its_children_pass_on(definitions: Tree, wanted: Charges) -> None:
    tree = charged(definitions, wanted)
    for cohort in tree.cohorts.values():
        for pair in PAIRS:
            passed = sum(max(0, c.used.get(pair, 0) - c.kept(pair)) for c in cohort.children)
            assert cohort.used.get(pair, 0) == passed


@given(trees(), charges)
@usual
def test_charge_then_refund_changes_nothing(definitions: Tree, wanted: Charges) -> None:
    tree = charged(definitions, wanted)
    before = state(tree)
    queue = min(tree.queues)
    for pair in PAIRS:
        tree.charge(queue, pair, 7)
    for pair in PAIRS:
        tree.refund(queue, pair, 7)
    assert state(tree) == before


@given(trees(), charges)
@usual
def test_the_order_of_charges_does_not_matter(definitions: Tree, wanted: Charges) -> None:
    assert state(charged(definitions, wanted)) == state(charged(definitions, wanted[::-1]))


@given(trees(), charges)
@usual
def test_charging_what_is_available_breaks_no_limit_anywhere(
    definitions: Tree, wanted: Charges
) -> None:
    tree = charged(definitions, wanted, only_what_fits=True)
    for node in every_node(tree):
        for pair, used in node.used.items():
            if node.parent is None:
                assert used <= node.subtree[pair]
            elif node.borrowing_limit(pair) < UNLIMITED:
                assert borrowed(node, pair) <= node.borrowing_limit(pair)


@given(trees(), charges)
@usual
def test_what_children_borrow_is_lent_by_the_others_and_the_cohort(
    definitions: Tree, wanted: Charges
) -> None:
    tree = charged(definitions, wanted, only_what_fits=True)
    for root in tree.roots:
        for pair in root.subtree:
            taken = sum(borrowed(child, pair) for child in root.children)
            lendable = root.nominal(pair) + sum(
                child.subtree.get(pair, 0)
                - child.kept(pair)
                - min(
                    child.subtree.get(pair, 0) - child.kept(pair),
                    max(0, child.used.get(pair, 0) - child.kept(pair)),
                )
                for child in root.children
            )
            assert taken <= lendable


@given(trees(), charges, st.sampled_from(PAIRS), st.integers(1, 20))
@usual
def test_available_is_the_most_that_may_be_charged(
    definitions: Tree, wanted: Charges, pair: Pair, more: int
) -> None:
    tree = charged(definitions, wanted, only_what_fits=True)
    for queue in tree.queues:
        if not tree.is_counted(queue, pair):
            continue
        most = tree.available(queue, pair)
        assert most >= 0
        assert tree.available(queue, pair) <= tree.potential(queue, pair)
        tree.charge(queue, pair, most + more)
        assert tree.available(queue, pair) < 0
        tree.refund(queue, pair, most + more)


@given(trees(), charges, st.sampled_from(PAIRS), st.integers(1, 60))
@usual
def test_a_shortage_is_told_exactly_when_there_is_one(
    definitions: Tree, wanted: Charges, pair: Pair, amount: int
) -> None:
    tree = charged(definitions, wanted)
    for queue in sorted(tree.queues):
        short = shortages(tree, queue, {pair: amount})
        assert bool(short) != tree.has_room(queue, {pair: amount})
        assert all(lack.missing > 0 for lack in short)


@given(trees(), charges, st.sampled_from(PAIRS), st.integers(1, 60))
@usual
def test_the_raises_told_let_the_request_pass_and_none_is_too_much(
    definitions: Tree, wanted: Charges, pair: Pair, amount: int
) -> None:
    for queue in sorted(QuotaTree(*definitions).queues):
        tree = charged(definitions, wanted)
        raises = raises_needed(tree, queue, {pair: amount})
        assert tree.has_room(queue, {pair: amount})
        if raises:
            assert not tree.has_room(queue, {pair: amount + 1})


@given(trees(), charges)
@usual
def test_a_root_never_has_less_than_its_children_can_see(
    definitions: Tree, wanted: Charges
) -> None:
    tree = charged(definitions, wanted)
    for node in every_node(tree):
        for pair in PAIRS:
            if node.parent is not None:
                own = max(0, node.kept(pair) - node.used.get(pair, 0))
                assert node_available(node, pair) <= own + node_available(node.parent, pair)


@given(trees(), charges, st.sampled_from(PAIRS), st.integers(1, 9))
@usual
def test_a_share_never_falls_when_more_is_asked_for(
    definitions: Tree, wanted: Charges, pair: Pair, more: int
) -> None:
    tree = charged(definitions, wanted)
    for queue in tree.queues.values():
        extra = tree.counted(queue.name, {pair: more})
        bits = tree.share_bits
        assert share_after(queue, extra, bits) >= share_after(queue, {}, bits)
