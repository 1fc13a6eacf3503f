"""Fair share: how much of what a cohort can lend a child has borrowed, by its scarcest resource.

Kueue's dominant resource share (KEP-1714), in whole numbers: shares are compared by multiplying
crosswise, so equal shares compare equal. Use within the own quota counts as no share at all.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from gateway.core.queues.tree import Pair, TreeNode, node_potential, top_of


@dataclass(frozen=True, slots=True, eq=False)
class Share:
    """A ratio of whole numbers, or more than any ratio."""

    part: int = 0
    whole: int = 1
    """Greater than 0."""
    is_infinite: bool = False
    """A child of weight 0 that borrows anything comes after all others."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Share) and not (self < other or other < self)

    def __lt__(self, other: "Share") -> bool:
        if self.is_infinite != other.is_infinite:
            return other.is_infinite
        return self.part * other.whole < other.part * self.whole

    def __hash__(self) -> int:
        return hash(self.is_infinite)  # equal ratios need not have equal parts


NO_SHARE = Share()


def dominant_share(node: TreeNode, extra: Mapping[Pair, int]) -> Share:
    """Give a child's share of its parent with `extra` added to its usage."""
    if node.parent is None:
        return NO_SHARE
    taken = _over_quota(node, extra)
    lendable = {resource: _lendable(node.parent, resource) for resource in taken}
    return _largest(
        [(taken[name], whole) for name, whole in lendable.items() if whole > 0], node.weight
    )


def _over_quota(node: TreeNode, extra: Mapping[Pair, int]) -> dict[str, int]:
    """Give what a child takes beyond its own quota, by resource."""
    taken: dict[str, int] = {}
    for pair in {*node.used, *extra}:
        over = node.used.get(pair, 0) + extra.get(pair, 0) - node.subtree.get(pair, 0)
        if over > 0:
            taken[pair[1]] = taken.get(pair[1], 0) + over
    return taken


def root_share(root: TreeNode, extra: Mapping[Pair, int]) -> Share:
    """Give a root's use of its own quota, by its scarcest resource, over its weight."""
    used: dict[str, int] = {}
    owned: dict[str, int] = {}
    for pair, quota in root.subtree.items():
        used[pair[1]] = used.get(pair[1], 0) + root.used.get(pair, 0) + extra.get(pair, 0)
        owned[pair[1]] = owned.get(pair[1], 0) + quota
    ratios = [(used[name], whole) for name, whole in owned.items() if whole > 0]
    return _largest(ratios, root.weight)


def borrows(node: TreeNode, extra: Mapping[Pair, int]) -> bool:
    """Whether a child would use more than its own quota of any pair of the request."""
    return node.parent is not None and any(
        node.used.get(pair, 0) + amount > node.subtree.get(pair, 0)
        for pair, amount in extra.items()
    )


def _lendable(parent: TreeNode, resource: str) -> int:
    """Give what a cohort could hold at most of a resource; fixed for the life of a tree."""
    if resource not in parent.lendable:
        parent.lendable[resource] = sum(
            node_potential(parent, pair) for pair in top_of(parent).subtree if pair[1] == resource
        )
    return parent.lendable[resource]


def _largest(ratios: list[tuple[int, int]], weight: int) -> Share:
    largest = max((Share(part, whole) for part, whole in ratios), default=NO_SHARE)
    if not largest.part:
        return NO_SHARE
    if not weight:
        return Share(largest.part, largest.whole, is_infinite=True)
    return Share(largest.part, largest.whole * weight)
