"""Quota, shares and the tournament straight from their definitions: recursive, from scratch.

Everything is computed anew from definitions and from what queues use, with fractions and nothing
remembered. What the product does incrementally is checked against it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from gateway.core.policies.fairness import Candidate
from gateway.core.queues.definitions import Cohort, Queue, Quota
from gateway.core.queues.tree import Pair
from gateway.core.vocabulary import UNLIMITED

Node = Queue | Cohort


@dataclass(slots=True)
class NaiveTree:
    """Definitions, what queues use and what they protect."""

    queues: Sequence[Queue]
    cohorts: Sequence[Cohort]
    use: dict[tuple[str, Pair], int] = field(default_factory=dict)
    protected: dict[str, dict[Pair, int]] = field(default_factory=dict)
    """Requests by queue; they hold what the unused nominal quota covers of them."""

    def charge(self, queue: str, pair: Pair, amount: int) -> None:
        self.use[queue, pair] = self.use.get((queue, pair), 0) + amount

    def queue(self, name: str) -> Queue:
        return next(queue for queue in self.queues if queue.name == name)

    def parent(self, node: Node) -> Cohort | None:
        name = node.cohort if isinstance(node, Queue) else node.parent
        return next((cohort for cohort in self.cohorts if cohort.name == name), None)

    def children(self, cohort: Cohort) -> list[Node]:
        below: list[Node] = [*self.queues, *self.cohorts]
        return [node for node in below if self.parent(node) is cohort]

    def root(self, node: Node) -> Node:
        above = self.parent(node)
        return node if above is None else self.root(above)

    def pairs(self, node: Node) -> set[Pair]:
        """Give the pairs listed anywhere in a node's root."""

        def below(top: Node) -> Iterator[Pair]:
            yield from ((row.flavor, row.resource) for row in top.quotas)
            for child in self.children(top) if isinstance(top, Cohort) else ():
                yield from below(child)

        return set(below(self.root(node)))

    def row(self, node: Node, pair: Pair) -> Quota:
        missing = Quota(flavor=pair[0], resource=pair[1], nominal=0)
        return next((r for r in node.quotas if (r.flavor, r.resource) == pair), missing)

    def subtree(self, node: Node, pair: Pair) -> int:
        own = self.row(node, pair).nominal
        if isinstance(node, Cohort):
            below = self.children(node)
            own += sum(self.subtree(each, pair) - self.kept(each, pair) for each in below)
        return min(UNLIMITED, own)

    def kept(self, node: Node, pair: Pair) -> int:
        lending = self.row(node, pair).lending_limit
        return max(0, self.subtree(node, pair) - lending) if lending < UNLIMITED else 0

    def used(self, node: Node, pair: Pair, asker: str | None = None) -> int:
        """Give the use, as a queue sees it that asks: with what all other queues protect."""
        if isinstance(node, Queue):
            use = self.use.get((node.name, pair), 0)
            if asker in {None, node.name}:
                return use
            request = self.protected.get(node.name, {}).get(pair, 0)
            return use + min(request, max(0, self.row(node, pair).nominal - use))
        below = self.children(node)
        return sum(max(0, self.used(c, pair, asker) - self.kept(c, pair)) for c in below)

    def available(self, node: Node, pair: Pair, asker: str | None = None) -> int:
        quota, use = self.subtree(node, pair), self.used(node, pair, asker)
        above = self.parent(node)
        if above is None:
            return quota - use
        kept, limit = self.kept(node, pair), self.row(node, pair).borrowing_limit
        from_above = self.available(above, pair, asker)
        if limit < UNLIMITED:
            from_above = min(from_above, quota - kept - max(0, use - kept) + limit)
        return max(0, kept - use) + from_above

    def potential(self, node: Node, pair: Pair) -> int:
        above = self.parent(node)
        if above is None:
            return self.subtree(node, pair)
        most = self.kept(node, pair) + self.potential(above, pair)
        limit = self.row(node, pair).borrowing_limit
        return min(most, self.subtree(node, pair) + limit) if limit < UNLIMITED else most

    def has_room(self, queue: str, charges: Mapping[Pair, int]) -> bool:
        node = self.queue(queue)
        counted = self.pairs(node) & set(charges)
        return all(self.available(node, pair, queue) >= charges[pair] for pair in counted)

    def share(self, node: Node, charges: Mapping[Pair, int]) -> tuple[bool, Fraction]:
        """Give whether it is infinite, and the ratio, over the weight where it is finite."""
        above = self.parent(node)
        taken: dict[str, int] = {}
        whole: dict[str, int] = {}
        for pair in self.pairs(node):
            quota = self.subtree(node, pair)
            after = self.used(node, pair) + charges.get(pair, 0)
            amount = after if above is None else max(0, after - quota)
            lent = quota if above is None else self.potential(above, pair)
            taken[pair[1]] = taken.get(pair[1], 0) + amount
            whole[pair[1]] = whole.get(pair[1], 0) + lent
        ratios = [Fraction(taken[name], whole[name]) for name in whole if whole[name] > 0]
        ratio = max(ratios, default=Fraction(0))
        return (True, ratio) if ratio and not node.weight else (False, ratio / (node.weight or 1))

    def borrows(self, node: Node, charges: Mapping[Pair, int]) -> bool:
        """Whether a child would be above its own quota of any pair of the request."""
        return self.parent(node) is not None and any(
            self.used(node, pair) + amount > self.subtree(node, pair)
            for pair, amount in charges.items()
        )

    def best(self, heads: Mapping[str, Candidate]) -> Candidate | None:
        """Play the whole tournament."""
        tops: list[Node] = [*self.queues, *self.cohorts]
        return self._first([node for node in tops if self.parent(node) is None], heads)

    def _first(self, nodes: list[Node], heads: Mapping[str, Candidate]) -> Candidate | None:
        entries = [(self.key(n, head), head) for n in nodes if (head := self._winner(n, heads))]
        return min(entries, key=lambda entry: entry[0])[1] if entries else None

    def _winner(self, node: Node, heads: Mapping[str, Candidate]) -> Candidate | None:
        if isinstance(node, Queue):
            return heads.get(node.name)
        return self._first(self.children(node), heads)

    def key(self, node: Node, head: Candidate) -> tuple[object, ...]:
        """Give what siblings compare by, in order, as if the request was already admitted."""
        counted = {pair: head.charges[pair] for pair in self.pairs(node) & set(head.charges)}
        for pair, amount in counted.items():
            self.charge(head.queue, pair, amount)
        borrows = self.borrows(node, dict.fromkeys(counted, 0))
        share = self.share(node, {})
        for pair, amount in counted.items():
            self.charge(head.queue, pair, -amount)
        return (
            borrows,
            share,
            -head.rank,
            head.submitted_us,
            node.name,
            isinstance(node, Cohort),
        )
