"""Fair share: how much of what a cohort can lend a child has borrowed, by its scarcest resource.

Kueue's dominant resource share (KEP-1714), as exact fractions: equal shares compare equal, and a
plan never depends on rounding. Use within the own quota counts as no share at all.
"""

from collections.abc import Mapping
from fractions import Fraction

from gateway.core.queues.tree import Pair, TreeNode, node_potential

Share = tuple[bool, Fraction]
"""(is infinite, ratio): a child of weight 0 that borrows anything comes after all others."""

NO_SHARE: Share = (False, Fraction(0))


def dominant_share(node: TreeNode, extra: Mapping[Pair, int]) -> Share:
    """Give a child's share of its parent with `extra` added to its usage."""
    if node.parent is None:
        return NO_SHARE
    taken: dict[str, int] = {}
    for pair in {*node.used, *extra}:
        over = node.used.get(pair, 0) + extra.get(pair, 0) - node.subtree.get(pair, 0)
        taken[pair[1]] = taken.get(pair[1], 0) + max(0, over)
    ratio = max(
        (
            Fraction(amount, lendable)
            for resource, amount in taken.items()
            if amount and (lendable := _lendable(node.parent, resource)) > 0
        ),
        default=Fraction(0),
    )
    return _weighted(ratio, node.weight)


def root_share(root: TreeNode, extra: Mapping[Pair, int]) -> Share:
    """Give a root's use of its own quota, by its scarcest resource, over its weight."""
    used: dict[str, int] = {}
    owned: dict[str, int] = {}
    for pair in root.subtree:
        used[pair[1]] = used.get(pair[1], 0) + root.used.get(pair, 0) + extra.get(pair, 0)
        owned[pair[1]] = owned.get(pair[1], 0) + root.subtree[pair]
    ratio = max(
        (Fraction(used[name], owned[name]) for name in owned if owned[name] > 0),
        default=Fraction(0),
    )
    return _weighted(ratio, root.weight)


def borrows(node: TreeNode, extra: Mapping[Pair, int]) -> bool:
    """Whether a child would use more than its own quota of any pair of the request."""
    return node.parent is not None and any(
        node.used.get(pair, 0) + amount > node.subtree.get(pair, 0)
        for pair, amount in extra.items()
    )


def _lendable(parent: TreeNode, resource: str) -> int:
    root = parent
    while root.parent:
        root = root.parent
    return sum(node_potential(parent, pair) for pair in root.subtree if pair[1] == resource)


def _weighted(ratio: Fraction, weight: int) -> Share:
    if not ratio:
        return NO_SHARE
    return (True, ratio) if weight == 0 else (False, ratio / weight)
