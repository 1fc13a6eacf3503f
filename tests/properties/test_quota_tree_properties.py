"""The quota tree, changed step by step, against its definition computed from scratch."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.core.queues.tree import QuotaTree, UsageRow
from gateway.core.vocabulary import UNLIMITED
from tests.properties.naive_quota import NaiveTree, Node
from tests.properties.strategies import FLAVORS, Dice, Tree, a_random_tree, seeds

usual = settings(max_examples=150, deadline=None)
PAIRS = [(flavor.name, resource) for flavor in FLAVORS for resource in ("gpu", "cpu")]


def a_random_step(dice: Dice, tree: QuotaTree, naive: NaiveTree) -> None:
    """Charge, refund, protect or end a protection, on both."""
    queue, pair = dice.pick(naive.queues).name, dice.pick(PAIRS)
    in_use = naive.use.get((queue, pair), 0)
    match dice.number(0, 5):
        case 0 if in_use:
            amount = dice.number(1, in_use)
            tree.refund(queue, pair, amount)
            naive.charge(queue, pair, -amount)
        case 1 | 2:
            request = {pair: dice.number(0, 9), dice.pick(PAIRS): dice.number(1, 20)}
            tree.protect(queue, request)
            naive.protected[queue] = request
        case 3:
            tree.unprotect(queue)
            naive.protected.pop(queue, None)
        case _:
            amount = dice.number(0, 12)
            tree.charge(queue, pair, amount)
            naive.charge(queue, pair, amount)


def a_random_state(seed: int, steps: int) -> tuple[Dice, QuotaTree, NaiveTree]:
    dice = Dice(seed)
    definitions = a_random_tree(dice, dice.number(1, 6), dice.number(0, 4))
    tree, naive = QuotaTree(*definitions), NaiveTree(*definitions)
    for _ in range(steps):
        a_random_step(dice, tree, naive)
    return dice, tree, naive


def figures(tree: QuotaTree) -> list[dict[str, int]]:
    """Give every figure that a change could have touched."""
    return [
        {"used": balance.used, "held": balance.held, "wanted": balance.wanted}
        for node in (*tree.queues.values(), *tree.cohorts.values())
        for balance in node.balances.values()
    ]


def rows(tree: QuotaTree) -> list[UsageRow]:
    return sorted(tree.usage())


@given(seeds, st.integers(0, 12))
@usual
def test_what_is_available_is_as_defined_beside_any_protections(seed: int, steps: int) -> None:
    _, tree, naive = a_random_state(seed, steps)
    for queue in naive.queues:
        for pair in PAIRS:
            assert tree.is_counted(queue.name, pair) == (pair in naive.pairs(queue))
            if tree.is_counted(queue.name, pair):
                expected = naive.available(queue, pair, queue.name)
                assert tree.available(queue.name, pair) == expected
                assert tree.potential(queue.name, pair) == naive.potential(queue, pair)
                charges = {pair: max(0, expected), ("large", "gpu"): 3}
                assert tree.has_room(queue.name, charges) == naive.has_room(queue.name, charges)


@given(seeds, st.integers(0, 12))
@usual
def test_each_node_has_its_quota_and_use_as_defined(seed: int, steps: int) -> None:
    _, tree, naive = a_random_state(seed, steps)
    named: list[tuple[str, Node]] = [("queues", queue) for queue in naive.queues]
    named += [("cohorts", cohort) for cohort in naive.cohorts]
    for kind, definition in named:
        node = getattr(tree, kind)[definition.name]
        for pair in node.balances:
            assert node.used[pair] == naive.used(definition, pair)
            assert node.subtree[pair] == naive.subtree(definition, pair)
            assert node.kept(pair) == naive.kept(definition, pair)


@given(seeds, st.integers(0, 8), st.integers(1, 8), st.integers(0, 4))
@usual
def test_going_back_to_a_mark_restores_every_figure(
    seed: int, before: int, between: int, after: int
) -> None:
    dice, tree, naive = a_random_state(seed, before)
    first = figures(tree), rows(tree), tree.mark()
    for _ in range(between):
        a_random_step(dice, tree, naive)
    second = figures(tree), rows(tree), tree.mark()
    for _ in range(after):
        a_random_step(dice, tree, naive)
    for state, usage, mark in (second, first, first):
        tree.back_to(mark)
        assert (figures(tree), rows(tree)) == (state, usage)


@given(seeds, st.integers(0, 12))
@usual
def test_a_tree_kept_up_to_date_equals_one_built_from_its_use(seed: int, steps: int) -> None:
    _, tree, naive = a_random_state(seed, steps)
    anew = QuotaTree(naive.queues, naive.cohorts, tree.usage())
    for name in tree.queues:
        tree.unprotect(name)
    assert tree._protected == 0  # else every later charge would go the long way
    assert figures(tree) == figures(anew)
    assert rows(tree) == rows(anew)


def edited(dice: Dice, definitions: Tree) -> Tree:
    """Give the definitions with other quotas, limits and parents for some."""
    queues, cohorts = definitions
    others, above = a_random_tree(dice, len(queues) + 1, len(cohorts))
    mixed = [dice.pick([old, new]) for old, new in zip(queues, others, strict=False)]
    known = {cohort.name for cohort in cohorts}
    kept = [q if q.cohort in known else replace(q, cohort=None) for q in mixed]
    if dice.happens(30):
        kept.append(others[-1])
    return tuple(kept), above


@given(seeds, st.integers(1, 12))
@usual
def test_after_an_edit_charges_and_refunds_go_on_as_if_the_tree_had_always_been_so(
    seed: int, steps: int
) -> None:
    dice, tree, naive = a_random_state(seed, steps)
    queues, cohorts = edited(dice, (tuple(naive.queues), tuple(naive.cohorts)))
    warm = tree.with_definitions(queues, cohorts)
    cold = QuotaTree(queues, cohorts, [(*key, amount) for key, amount in naive.use.items()])
    assert figures(warm) == figures(cold)
    for (queue, pair), amount in naive.use.items():
        warm.refund(queue, pair, amount)
    assert not any(any(values.values()) for values in figures(warm))
    assert not rows(warm)


@given(seeds)
@usual
def test_what_passes_never_over_commits_a_node_even_beside_protections(seed: int) -> None:
    dice, tree, naive = a_random_state(seed, 0)
    for _ in range(20):
        queue, pair = dice.pick(naive.queues).name, dice.pick(PAIRS)
        request = {pair: dice.number(1, 9)}
        if not tree.has_room(queue, request):
            tree.protect(queue, request)
        elif tree.is_counted(queue, pair):
            tree.charge(queue, pair, request[pair])
    for node in (*tree.queues.values(), *tree.cohorts.values()):
        for pair, used in node.used.items():
            limit = node.borrowing_limit(pair) if node.parent else 0
            assert limit >= UNLIMITED or used <= node.subtree[pair] + limit


@given(seeds, st.integers(0, 10))
@usual
def test_what_is_protected_stays_within_reach_of_its_queue(seed: int, steps: int) -> None:
    _, tree, naive = a_random_state(seed, steps)
    for queue in naive.queues:
        for pair in PAIRS:
            if not tree.is_counted(queue.name, pair):
                continue
            own = tree.available(queue.name, pair)
            for other in naive.queues:
                if other.name != queue.name:
                    tree.unprotect(other.name)
            assert tree.available(queue.name, pair) >= own
