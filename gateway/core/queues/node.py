"""A node of the quota tree: a queue or a cohort, with its balance of every counted pair.

Only the figures inside the balances change once the tree stands.
"""

from dataclasses import dataclass, field

from gateway.core.queues.balance import Balance, Pair
from gateway.core.vocabulary import UNLIMITED


@dataclass(slots=True, kw_only=True, eq=False)
class TreeNode:
    """A queue or cohort with quota and usage by pair; all nodes of a root have the same pairs."""

    name: str
    is_queue: bool
    weight: int
    parent: "TreeNode | None" = None
    children: "list[TreeNode]" = field(default_factory=list)
    """By `place`."""
    depth: int = 0
    """Nodes above it."""
    place: int = 0
    """Position among its siblings, or among the roots: by name, a queue before a cohort."""
    balances: dict[Pair, Balance] = field(default_factory=dict)
    shared: "list[tuple[int, tuple[Balance, ...]]] | None" = None
    """Balances by resource with what their share is measured by; `share` fills it when asked."""

    @property
    def used(self) -> dict[Pair, int]:
        """Usage by pair, for reading."""
        return {pair: balance.used for pair, balance in self.balances.items()}

    @property
    def subtree(self) -> dict[Pair, int]:
        """Own nominal plus what the children lend upwards, by pair, for reading."""
        return {pair: balance.subtree for pair, balance in self.balances.items()}

    def nominal(self, pair: Pair) -> int:
        """Own guaranteed amount; 0 where no row stands."""
        balance = self.balances.get(pair)
        return balance.nominal if balance else 0

    def kept(self, pair: Pair) -> int:
        """Part of the subtree's quota that nobody outside may take."""
        balance = self.balances.get(pair)
        return balance.kept if balance else 0

    def borrowing_limit(self, pair: Pair) -> int:
        """Most that may come from outside the subtree."""
        balance = self.balances.get(pair)
        return balance.borrowing_limit if balance else UNLIMITED


def top_of(node: TreeNode) -> TreeNode:
    """Give the top of a node's tree."""
    # Trees are a few levels deep, so the top is looked up and not remembered.
    while node.parent:
        node = node.parent
    return node


def node_available(node: TreeNode, pair: Pair) -> int:
    """Give what may still be taken at a node as if nothing was protected; 0 when not counted."""
    balance = node.balances.get(pair)
    return balance.available() if balance else 0


def node_potential(node: TreeNode, pair: Pair) -> int:
    """Give the most that a node could ever take; 0 when the pair is not counted."""
    balance = node.balances.get(pair)
    return balance.potential() if balance else 0


def borrowed(node: TreeNode, pair: Pair) -> int:
    """Give what a node's subtree uses beyond its own quota."""
    balance = node.balances.get(pair)
    # By the whole subtree: what siblings below lend each other is nothing borrowed from outside.
    return max(0, balance.used - balance.subtree) if balance else 0
