"""Fair share: how much of what a cohort can lend a child has borrowed, by its scarcest resource.

Kueue's dominant resource share (KEP-1714) over weight, as one whole number: the exact ratio moved
by `QuotaTree.share_bits` binary places and rounded down. So many places are enough that different
ratios stay different and equal ones equal, whatever amounts and weights are. Use within the own
quota counts as no share at all.
"""

from collections.abc import Mapping

from gateway.core.queues.balance import Balance, Pair
from gateway.core.queues.node import TreeNode, node_potential


def share_after(node: TreeNode, charges: Mapping[Pair, int], bits: int) -> int:
    """Give a node's share with a request added to its use, over its weight if it has one.

    Of a child: what it takes beyond its quota, of what its parent can hold at most. Of a root: what
    it uses of its own quota, as it has nobody to borrow from. Shares of siblings, and of roots,
    compare with each other, except that a share above 0 of weight 0 comes after all others.
    """
    largest = 0
    is_root = node.parent is None
    for whole, balances in _measured(node) if node.shared is None else node.shared:
        taken = 0
        for balance in balances:
            after = balance.used + charges.get(balance.pair, 0)
            if is_root:
                taken += after
            elif after > balance.subtree:
                taken += after - balance.subtree
        if taken:
            largest = max(largest, (taken << bits) // whole)
    return largest


def borrows(node: TreeNode, charges: Mapping[Pair, int]) -> bool:
    """Whether a child would use more than its own quota of any counted pair of the request."""
    if node.parent is None:
        return False
    for pair, amount in charges.items():
        balance = node.balances.get(pair)
        if balance is not None and balance.used + amount > balance.subtree:
            return True
    return False


def _measured(node: TreeNode) -> list[tuple[int, tuple[Balance, ...]]]:
    """Group a node's balances by resource, each with its whole; what nobody has is left out."""
    groups: dict[str, list[Balance]] = {}
    for pair, balance in node.balances.items():
        groups.setdefault(pair[1], []).append(balance)
    measured = [(_whole(node, group), tuple(group)) for group in groups.values()]
    node.shared = [(whole * (node.weight or 1), group) for whole, group in measured if whole > 0]
    return node.shared


def _whole(node: TreeNode, group: list[Balance]) -> int:
    """Give what a share of some flavors of one resource is measured by."""
    if node.parent is None:
        return sum(balance.subtree for balance in group)
    return sum(node_potential(node.parent, balance.pair) for balance in group)
