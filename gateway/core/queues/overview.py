"""The quota tree for people: what every node has, uses and borrows, and what its weight gives it.

Reads a tree and judges nothing. A share is the number that siblings compete by; here it is rounded,
there it is exact.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from gateway.core.queues.node import TreeNode, borrowed, node_available, node_potential
from gateway.core.queues.tree import Pair, QuotaTree
from gateway.core.vocabulary import UNLIMITED


@dataclass(frozen=True, slots=True, kw_only=True)
class PairStanding:
    """One (flavor, resource) at one node, in base units; None stands for no limit."""

    pair: Pair
    nominal: int
    subtree: int | None
    """Own nominal with what the nodes below lend upwards."""
    used: int
    borrowed: int
    """Part of the use that is beyond the quota of the subtree."""
    available: int | None
    """What may still be taken here; negative after a cut."""
    entitlement: int | None
    """What its weight gives it of what its cohort can lend, beside what it keeps for itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeStanding:
    """One queue or cohort with all pairs that its root counts."""

    name: str
    is_queue: bool
    parent: str | None
    depth: int
    weight: int
    share: float
    """Of what its cohort can hold, over its weight, by the scarcest resource; of a root, of its
    own quota. Without weight where the weight is 0."""
    resource: str
    """The scarcest one; empty where the share is nothing."""
    rows: tuple[PairStanding, ...]


def overview(tree: QuotaTree, queue: str = "") -> tuple[NodeStanding, ...]:
    """Give every node, or those of the tree that a queue is in; parents first, siblings by name."""
    roots = [tree.root_of(queue)] if queue else tree.roots
    return tuple(_standing(node) for root in roots for node in _below(root))


def _below(node: TreeNode) -> Iterator[TreeNode]:
    yield node
    for child in node.children:
        yield from _below(child)


def _standing(node: TreeNode) -> NodeStanding:
    part, resource = _scarcest(node)
    return NodeStanding(
        name=node.name,
        is_queue=node.is_queue,
        parent=node.parent.name if node.parent else None,
        depth=node.depth,
        weight=node.weight,
        share=part / (node.weight or 1),
        resource=resource,
        rows=tuple(_row(node, pair) for pair in sorted(node.balances)),
    )


def _row(node: TreeNode, pair: Pair) -> PairStanding:
    balance = node.balances[pair]
    return PairStanding(
        pair=pair,
        nominal=balance.nominal,
        subtree=_limited(balance.subtree),
        used=balance.used,
        borrowed=borrowed(node, pair),
        available=_limited(node_available(node, pair)),
        entitlement=_entitlement(node, pair),
    )


def _entitlement(node: TreeNode, pair: Pair) -> int | None:
    if node.parent is None:
        return _limited(node.balances[pair].subtree)
    lendable = _limited(node_potential(node.parent, pair))
    if lendable is None:
        return None
    weights = sum(sibling.weight for sibling in node.parent.children)
    # Rounded down, so that the children's parts never add up to more than there is.
    return node.kept(pair) + lendable * node.weight // (weights or 1)


def _scarcest(node: TreeNode) -> tuple[float, str]:
    """Give the largest part that a node takes of a resource, and which one, first by name."""
    largest, scarcest = 0.0, ""
    # By name, and only a larger part wins: of equal ones the same one is told every time.
    for resource in sorted({pair[1] for pair in node.balances}):
        taken, whole = _taken(node, [pair for pair in node.balances if pair[1] == resource])
        if whole > 0 and taken / whole > largest:
            largest, scarcest = taken / whole, resource
    return largest, scarcest


def _taken(node: TreeNode, pairs: list[Pair]) -> tuple[int, int]:
    """Give what a node takes of these pairs together, and of how much."""
    if node.parent is None:
        balances = [node.balances[pair] for pair in pairs]
        return sum(each.used for each in balances), sum(each.subtree for each in balances)
    whole = sum(node_potential(node.parent, pair) for pair in pairs)
    return sum(borrowed(node, pair) for pair in pairs), whole


def _limited(amount: int) -> int | None:
    # Sums with what is unlimited are a little below or above it.
    return None if amount >= UNLIMITED // 2 else amount
