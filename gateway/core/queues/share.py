"""Fair share: how much of what a cohort can lend a child has borrowed, by its scarcest resource.

Kueue's dominant resource share (KEP-1714) over weight, as one whole number: the exact ratio moved
by `QuotaTree.share_bits` binary places and rounded down. So many places are enough that different
ratios stay different and equal ones equal, whatever amounts and weights are. Use within the own
quota counts as no share at all.
"""

from collections.abc import Mapping

from gateway.core.queues.balance import Balance, Pair, passed
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
            # Shifted before divided: enough places that unequal ratios stay unequal when rounded
            # down.
            largest = max(largest, (taken << bits) // whole)
    return largest


def borrows(node: TreeNode, charges: Mapping[Pair, int]) -> bool:
    """Whether a child would use more than its own quota of any counted pair of the request."""
    # A root has nobody to borrow from, so all roots are equal here and go by their shares.
    if node.parent is None:
        return False
    for pair, amount in charges.items():
        balance = node.balances.get(pair)
        if balance is not None and balance.used + amount > balance.subtree:
            return True
    return False


def reaching(leaf: TreeNode, node: TreeNode, charges: Mapping[Pair, int]) -> dict[Pair, int]:
    """Give what of a queue's request a cohort above it would count, by counted pair.

    The rest is served below it from quota that is never lent.
    """
    found: dict[Pair, int] = {}
    for pair, amount in charges.items():
        balance, rest = leaf.balances.get(pair), amount
        if balance is None:
            continue
        top = node.balances[pair]
        while balance is not None and balance is not top:
            # What a node still keeps swallows part of the request before anybody above hears of it.
            rest = passed(balance.kept, balance.used + rest) - passed(balance.kept, balance.used)
            balance = balance.above
        found[pair] = rest
    return found


def _measured(node: TreeNode) -> list[tuple[int, tuple[Balance, ...]]]:
    """Group a node's balances by resource, each with its whole; what nobody has is left out."""
    # Siblings are measured by the same wholes, so these are summed up once for all of them.
    siblings = [node] if node.parent is None else node.parent.children
    wholes = _owned(node) if node.parent is None else _lendable(node.parent)
    for each in siblings:
        # Shares of weight 0 are compared unweighted, among themselves; the key puts them last.
        weight = each.weight or 1
        each.shared = [
            (whole * weight, _balances_of(each, name))
            for name, whole in wholes.items()
            if whole > 0
        ]
    return node.shared or []


def _balances_of(node: TreeNode, resource: str) -> tuple[Balance, ...]:
    return tuple(balance for pair, balance in node.balances.items() if pair[1] == resource)


def _owned(root: TreeNode) -> dict[str, int]:
    """Give a root's quota by resource."""
    return _by_resource(root.subtree)


def _lendable(parent: TreeNode) -> dict[str, int]:
    """Give what a cohort can hold at most by resource."""
    return _by_resource({pair: node_potential(parent, pair) for pair in parent.balances})


def _by_resource(amounts: Mapping[Pair, int]) -> dict[str, int]:
    total: dict[str, int] = {}
    for (_, resource), amount in amounts.items():
        total[resource] = total.get(resource, 0) + amount
    return total
