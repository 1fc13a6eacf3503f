"""The tournament, kept up to date on changed paths only, against playing it whole each time."""

import random
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.core.policies.fairness import Candidate, Tournament
from gateway.core.queues.definitions import Cohort, Queue, Quota
from gateway.core.queues.tree import QuotaTree
from gateway.core.vocabulary import UNLIMITED
from tests.properties.naive_quota import NaiveTree
from tests.properties.strategies import Dice, Tree, a_random_tree, seeds
from tests.properties.test_quota_tree_properties import PAIRS

usual = settings(max_examples=150, deadline=None)


def a_random_head(dice: Dice, tree: QuotaTree, queue: str, scale: int = 1) -> Candidate:
    asked = {dice.pick(PAIRS): dice.number(0, 12) * scale for _ in range(dice.number(1, 3))}
    return Candidate(
        queue=queue,
        row=dice.number(0, 99),
        submitted_us=dice.number(0, 2),
        charges=tree.counted(queue, asked),
        rank=dice.number(-1, 1),
    )


class Game:
    """A tournament, its oracle, and the heads that compete."""

    def __init__(self, definitions: Tree) -> None:
        self.tree, self.naive = QuotaTree(*definitions), NaiveTree(*definitions)
        self.tournament = Tournament(self.tree)
        self.heads: dict[str, Candidate] = {}
        self.names = sorted(self.tree.queues)

    def put(self, head: Candidate) -> None:
        self.heads[head.queue] = head
        self.tournament.put(head)

    def withdraw(self, queue: str) -> None:
        self.heads.pop(queue, None)
        self.tournament.withdraw(queue)

    def charge(self, queue: str, charges: dict[tuple[str, str], int]) -> None:
        for pair, amount in charges.items():
            self.tree.charge(queue, pair, amount)
            self.naive.charge(queue, pair, amount)
        self.tournament.refresh(queue)

    def move(self, dice: Dice) -> None:
        queue = dice.pick(self.names)
        match dice.number(0, 5):
            case 0:
                self.withdraw(queue)
            case 1:
                self.charge(queue, {dice.pick(PAIRS): dice.number(0, 9)})
            case 2:
                self.tree.protect(queue, {dice.pick(PAIRS): dice.number(0, 9)})
            case 3 if (winner := self.tournament.best()) is not None:
                self.charge(winner.queue, dict(winner.charges))
                self.put(a_random_head(dice, self.tree, winner.queue))
            case _:
                self.put(a_random_head(dice, self.tree, queue))


@given(seeds, st.integers(1, 20))
@usual
def test_the_tournament_picks_what_playing_it_whole_picks(seed: int, moves: int) -> None:
    dice = Dice(seed)
    game = Game(a_random_tree(dice, dice.number(1, 7), dice.number(0, 5)))
    for _ in range(moves):
        game.move(dice)
        if dice.happens(60):
            assert game.tournament.best() == game.naive.best(game.heads)
    assert game.tournament.best() == game.naive.best(game.heads)


@given(seeds)
@usual
def test_emptying_the_tournament_gives_one_order_of_all_heads(seed: int) -> None:
    dice = Dice(seed)
    game = Game(a_random_tree(dice, dice.number(1, 7), dice.number(0, 5)))
    for name in game.names:
        game.put(a_random_head(dice, game.tree, name))
    for _ in game.names:
        winner = game.tournament.best()
        assert winner is not None
        assert winner == game.naive.best(game.heads)
        game.withdraw(winner.queue)
    assert game.tournament.best() is None


def scaled_row(row: Quota, by: int) -> Quota:
    limits = (row.borrowing_limit, row.lending_limit)
    borrowing, lending = (n if n >= UNLIMITED else n * by for n in limits)
    return replace(row, nominal=row.nominal * by, borrowing_limit=borrowing, lending_limit=lending)


def scaled(definitions: Tree, *, amounts: int, weights: int) -> Tree:
    queues, cohorts = definitions

    def rows(owner: Queue | Cohort) -> tuple[Quota, ...]:
        return tuple(scaled_row(row, amounts) for row in owner.quotas)

    return (
        tuple(replace(q, weight=q.weight * weights, quotas=rows(q)) for q in queues),
        tuple(replace(c, weight=c.weight * weights, quotas=rows(c)) for c in cohorts),
    )


def order_of_play(definitions: Tree, seed: int, scale: int) -> list[str]:
    """Charge some use, then admit whoever wins until everybody had a turn or no room."""
    dice, game, order = Dice(seed), Game(definitions), []
    for _ in range(3):
        game.charge(dice.pick(game.names), {dice.pick(PAIRS): dice.number(0, 9) * scale})
    for name in game.names:
        game.put(a_random_head(dice, game.tree, name, scale))
    while (winner := game.tournament.best()) is not None:
        order.append(winner.queue)
        if game.tree.has_room(winner.queue, winner.charges):
            game.charge(winner.queue, dict(winner.charges))
        if len(order) < 3 * len(game.names):
            game.put(a_random_head(dice, game.tree, winner.queue, scale))
        else:
            game.withdraw(winner.queue)
    return order


@given(seeds, st.sampled_from([1, 3, 1000, 7919]), st.sampled_from([1, 2, 999_983]))
@settings(max_examples=60, deadline=None)
def test_scaling_all_amounts_or_all_weights_changes_no_choice(
    seed: int, amounts: int, weights: int
) -> None:
    dice = Dice(seed)
    plain = a_random_tree(dice, dice.number(1, 6), dice.number(0, 4))
    larger = scaled(plain, amounts=amounts, weights=weights)
    assert order_of_play(larger, seed, amounts) == order_of_play(plain, seed, 1)


@given(seeds, st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_the_order_of_definitions_changes_no_choice(seed: int, shuffler: random.Random) -> None:
    dice = Dice(seed)
    queues, cohorts = a_random_tree(dice, dice.number(1, 6), dice.number(0, 4))
    mixed = list(queues), list(cohorts)
    for definitions in mixed:
        shuffler.shuffle(definitions)
    other = tuple(mixed[0]), tuple(mixed[1])
    assert order_of_play(other, seed, 1) == order_of_play((queues, cohorts), seed, 1)
