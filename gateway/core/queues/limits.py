"""Which node of the quota tree stands in the way of a request, and by how much.

Judged by what is in use; what a pass protects for somebody is no lack of quota.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from gateway.core.queues.balance import Balance, Pair
from gateway.core.queues.node import TreeNode
from gateway.core.queues.tree import QuotaTree
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
    node = tree.queues[queue]
    return tuple(
        _limiting(node, pair, amount)[1]
        for pair, amount in tree.counted(queue, charges).items()
        if node.balances[pair].available() < amount
    )


def raises_needed(tree: QuotaTree, queue: str, charges: Mapping[Pair, int]) -> tuple[Shortage, ...]:
    """Give the smallest raises of limits and root quotas that let a request pass.

    Each raise is made on the given tree, which is spent afterwards, until nothing is short.
    """
    node = tree.queues[queue]
    found: list[Shortage] = []
    for pair, amount in tree.counted(queue, charges).items():
        # A raised limit may uncover a narrower one above it, so more than one raise may be needed.
        while node.balances[pair].available() < amount:
            balance, shortage = _limiting(node, pair, amount)
            _raise(balance, shortage)
            found.append(shortage)
    return tuple(found)


def _raise(balance: Balance, shortage: Shortage) -> None:
    if shortage.is_borrowing_limit:
        balance.borrowing_limit += shortage.missing
    else:
        # Own quota and what children lend are one sum here; which of them is raised is the admin's.
        balance.subtree += shortage.missing


def _limiting(queue: TreeNode, pair: Pair, amount: int) -> tuple[Balance, Shortage]:
    """Walk upwards with what each node cannot cover itself."""
    # Kueue's `available`, followed with the amount that is still to be covered: what a node keeps
    # for itself need not be borrowed, and the first limit too narrow for the rest is to be named.
    node, balance = queue, queue.balances[pair]
    rest = amount
    limited = False
    while node.parent is not None and not limited:
        rest -= max(0, balance.kept - balance.used)
        in_use = max(balance.kept, balance.used)
        within_limit = balance.subtree - in_use + balance.borrowing_limit
        limited = balance.borrowing_limit < UNLIMITED and within_limit < rest
        node = node if limited else node.parent
        balance = node.balances[pair]
    return balance, Shortage(
        pair=pair,
        requested=amount,
        available=queue.balances[pair].available(),
        node=node.name,
        is_borrowing_limit=limited,
        # Of the root what it has left, since there is nobody above that it could borrow from.
        missing=rest - (within_limit if limited else balance.available()),
    )
