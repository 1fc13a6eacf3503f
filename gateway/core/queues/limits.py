"""Which node of the quota tree stands in the way of a request, and by how much."""

from collections.abc import Mapping
from dataclasses import dataclass

from gateway.core.queues.tree import Pair, QuotaTree, TreeNode
from gateway.core.vocabulary import UNLIMITED


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortage:
    """What one (flavor, resource) lacks, and the tree node that limits it."""

    pair: Pair
    requested: int
    available: int
    node: str
    is_borrowing_limit: bool

    @property
    def missing(self) -> int:
        """Amount that would have to be added or come free."""
        return self.requested - max(0, self.available)


def shortages(tree: QuotaTree, queue: str, charges: Mapping[Pair, int]) -> tuple[Shortage, ...]:
    """Give every counted pair that does not suffice, by name."""
    return tuple(
        _shortage(tree, queue, pair, amount)
        for pair, amount in sorted(charges.items())
        if tree.is_counted(queue, pair) and tree.available(queue, pair) < amount
    )


def _shortage(tree: QuotaTree, queue: str, pair: Pair, amount: int) -> Shortage:
    node, by_limit = _limiting(tree.queues[queue], pair, amount)
    return Shortage(
        pair=pair,
        requested=amount,
        available=tree.available(queue, pair),
        node=node.name,
        is_borrowing_limit=by_limit,
    )


def _limiting(node: TreeNode, pair: Pair, amount: int) -> tuple[TreeNode, bool]:
    """Walk upwards with what each node cannot cover itself."""
    while node.parent is not None:
        kept, used = node.kept(pair), node.used.get(pair, 0)
        amount -= max(0, kept - used)
        limit = node.borrowing_limit(pair)
        stored = node.subtree.get(pair, 0) - kept
        if limit < UNLIMITED and stored - max(0, used - kept) + limit < amount:
            return node, True
        node = node.parent
    return node, False
