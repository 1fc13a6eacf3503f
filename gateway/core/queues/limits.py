"""Which node of the quota tree stands in the way of a request, and by how much."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from gateway.core.queues.tree import Pair, QuotaTree, TreeNode, node_available
from gateway.core.vocabulary import UNLIMITED, Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortage:
    """What one (flavor, resource) lacks, and the tree node that limits it."""

    pair: Pair
    requested: int
    available: int
    node: str
    is_borrowing_limit: bool
    missing: int
    """Amount by which this node's limit or quota is too small."""

    @property
    def reason(self) -> Reason:
        """Code for what binds."""
        return Reason.OVER_BORROWING_LIMIT if self.is_borrowing_limit else Reason.OVER_QUOTA

    @property
    def limit(self) -> str:
        """Words for what binds."""
        return "borrowing limit" if self.is_borrowing_limit else "quota"


def shortages(tree: QuotaTree, queue: str, charges: Mapping[Pair, int]) -> tuple[Shortage, ...]:
    """Give every counted pair that does not suffice, by name."""
    return tuple(
        _limiting(tree, queue, pair, amount)[1]
        for pair, amount in tree.counted(queue, charges).items()
        if tree.available(queue, pair) < amount
    )


def raises_needed(tree: QuotaTree, queue: str, charges: Mapping[Pair, int]) -> tuple[Shortage, ...]:
    """Give the smallest raises of limits and root quotas that let a request pass.

    Each raise is made on the given tree, which is spent afterwards, until nothing is short.
    """
    found: list[Shortage] = []
    for pair, amount in tree.counted(queue, charges).items():
        while tree.available(queue, pair) < amount:
            node, shortage = _limiting(tree, queue, pair, amount)
            _raise(node, shortage)
            found.append(shortage)
    return tuple(found)


def _raise(node: TreeNode, shortage: Shortage) -> None:
    pair = shortage.pair
    if shortage.is_borrowing_limit:
        quota = node.quotas[pair]
        node.quotas[pair] = replace(quota, borrowing_limit=quota.borrowing_limit + shortage.missing)
    else:
        node.subtree[pair] = node.subtree.get(pair, 0) + shortage.missing


def _limiting(tree: QuotaTree, queue: str, pair: Pair, amount: int) -> tuple[TreeNode, Shortage]:
    """Walk upwards with what each node cannot cover itself."""
    node = tree.queues[queue]
    rest = amount
    limited = False
    while node.parent is not None and not limited:
        kept, used = node.kept(pair), node.used.get(pair, 0)
        rest -= max(0, kept - used)
        limit = node.borrowing_limit(pair)
        within_limit = node.subtree.get(pair, 0) - kept - max(0, used - kept) + limit
        limited = limit < UNLIMITED and within_limit < rest
        node = node if limited else node.parent
    return node, Shortage(
        pair=pair,
        requested=amount,
        available=tree.available(queue, pair),
        node=node.name,
        is_borrowing_limit=limited,
        missing=rest - (within_limit if limited else node_available(node, pair)),
    )
