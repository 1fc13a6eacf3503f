"""The quota tree with its usage: what is available where, and what an admission charges.

The arithmetic is Kueue's (KEP-79 hierarchical cohorts): each tree node keeps its own quota and
what its children take beyond what they keep for themselves. Amounts are whole numbers; UNLIMITED
is large enough to survive addition and is never charged against.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from gateway.core.queues.definitions import Cohort, Queue, Quota
from gateway.core.vocabulary import UNLIMITED
from gateway.errors import InvalidInput

Pair = tuple[str, str]
"""(flavor, resource)."""


@dataclass(slots=True, kw_only=True, eq=False)
class TreeNode:
    """A queue or cohort with quota and usage by pair."""

    name: str
    is_queue: bool
    weight: int
    parent: "TreeNode | None" = None
    quotas: dict[Pair, Quota] = field(default_factory=dict)
    children: "list[TreeNode]" = field(default_factory=list)
    subtree: dict[Pair, int] = field(default_factory=dict)
    """Own nominal plus what the children lend upwards."""
    used: dict[Pair, int] = field(default_factory=dict)
    lendable: dict[str, int] = field(default_factory=dict)
    """Most that could be held here by resource, filled by `share` when first asked for."""

    def nominal(self, pair: Pair) -> int:
        """Own guaranteed amount; 0 where no row stands."""
        quota = self.quotas.get(pair)
        return quota.nominal if quota else 0

    def kept(self, pair: Pair) -> int:
        """Part of the subtree's quota that nobody outside may take."""
        quota = self.quotas.get(pair)
        if quota is None or quota.lending_limit >= UNLIMITED:
            return 0
        return max(0, self.subtree.get(pair, 0) - quota.lending_limit)

    def borrowing_limit(self, pair: Pair) -> int:
        """Most that may come from outside the subtree."""
        quota = self.quotas.get(pair)
        return quota.borrowing_limit if quota else UNLIMITED


def top_of(node: TreeNode) -> TreeNode:
    """Give the top of a node's tree."""
    while node.parent:
        node = node.parent
    return node


class QuotaTree:
    """All queues and cohorts; mutable by `charge` and `refund` only."""

    def __init__(self, queues: Sequence[Queue], cohorts: Sequence[Cohort]) -> None:
        """Build the tree; raises InvalidInput on a cycle or an unknown parent."""
        self.cohorts = {cohort.name: _node_of(cohort) for cohort in cohorts}
        self.queues = {queue.name: _node_of(queue) for queue in queues}
        self._link(queues, cohorts)
        self.roots = [
            node for node in (*self.cohorts.values(), *self.queues.values()) if not node.parent
        ]
        self._counted: dict[int, frozenset[Pair]] = {}
        for root in self.roots:
            _fill_subtree(root)
            self._counted[id(root)] = frozenset(_pairs_of(root))

    def _link(self, queues: Sequence[Queue], cohorts: Sequence[Cohort]) -> None:
        parents = [(self.cohorts[cohort.name], cohort.parent) for cohort in cohorts]
        parents += [(self.queues[queue.name], queue.cohort) for queue in queues]
        for node, parent in parents:
            if parent is not None:
                self._hang(node, parent)
        for node in self.cohorts.values():
            _refuse_cycle(node)

    def _hang(self, node: TreeNode, parent: str) -> None:
        """Put a node below a cohort."""
        if parent not in self.cohorts:
            raise InvalidInput(
                f"{node.name} names the unknown cohort {parent}",
                value=parent,
                allowed=tuple(sorted(self.cohorts)),
                hint="create the cohort first",
            )
        node.parent = self.cohorts[parent]
        node.parent.children.append(node)

    def root_of(self, queue: str) -> TreeNode:
        """Give the top of a queue's tree."""
        return top_of(self.queues[queue])

    def is_counted(self, queue: str, pair: Pair) -> bool:
        """Whether a pair is limited at all: listed anywhere in the queue's root."""
        return pair in self._counted[id(self.root_of(queue))]

    def counted(self, queue: str, charges: Mapping[Pair, int]) -> dict[Pair, int]:
        """Give the part of a request that quota counts, by name."""
        return {
            pair: amount for pair, amount in sorted(charges.items()) if self.is_counted(queue, pair)
        }

    def has_room(self, queue: str, charges: Mapping[Pair, int]) -> bool:
        """Whether every counted pair of a request has enough left."""
        return all(
            self.available(queue, pair) >= amount
            for pair, amount in self.counted(queue, charges).items()
        )

    def charge(self, queue: str, pair: Pair, amount: int) -> None:
        """Add to a queue's usage and pass on what it does not keep; uncounted pairs are free."""
        if not self.is_counted(queue, pair):
            return
        node: TreeNode | None = self.queues[queue]
        while node is not None and amount:
            before = node.used.get(pair, 0)
            node.used[pair] = before + amount
            own = node.kept(pair)
            amount = max(0, before + amount - own) - max(0, before - own)
            node = node.parent

    def refund(self, queue: str, pair: Pair, amount: int) -> None:
        """Take back exactly what `charge` added."""
        self.charge(queue, pair, -amount)

    def available(self, queue: str, pair: Pair) -> int:
        """Give what the queue may still take; negative after its quota was cut below its use."""
        return node_available(self.queues[queue], pair)

    def potential(self, queue: str, pair: Pair) -> int:
        """Give what the queue could take at most with everything else idle."""
        return node_potential(self.queues[queue], pair)

    def path(self, queue: str) -> list[TreeNode]:
        """Give the nodes from the queue up to its root."""
        node: TreeNode | None = self.queues[queue]
        path = []
        while node is not None:
            path.append(node)
            node = node.parent
        return path


def node_available(node: TreeNode, pair: Pair) -> int:
    """Give what may still be taken at a node (Kueue: available)."""
    quota, used = node.subtree.get(pair, 0), node.used.get(pair, 0)
    if node.parent is None:
        return quota - used
    own = node.kept(pair)
    from_parent = node_available(node.parent, pair)
    limit = node.borrowing_limit(pair)
    if limit < UNLIMITED:
        # What is stored in the parent, less what of it is in use, plus the right to borrow.
        stored = quota - own
        used_in_parent = max(0, used - own)
        from_parent = min(stored - used_in_parent + limit, from_parent)
    return max(0, own - used) + from_parent


def node_potential(node: TreeNode, pair: Pair) -> int:
    """Give the most that a node could ever take (Kueue: potentialAvailable)."""
    quota = node.subtree.get(pair, 0)
    if node.parent is None:
        return quota
    total = node.kept(pair) + node_potential(node.parent, pair)
    limit = node.borrowing_limit(pair)
    return min(quota + limit, total) if limit < UNLIMITED else total


def borrowed(node: TreeNode, pair: Pair) -> int:
    """Give what a node's subtree uses beyond its own quota."""
    return max(0, node.used.get(pair, 0) - node.subtree.get(pair, 0))


def _node_of(definition: Queue | Cohort) -> TreeNode:
    return TreeNode(
        name=definition.name,
        is_queue=isinstance(definition, Queue),
        weight=definition.weight,
        quotas={(quota.flavor, quota.resource): quota for quota in definition.quotas},
    )


def _pairs_of(node: TreeNode) -> set[Pair]:
    return set(node.quotas).union(*(_pairs_of(child) for child in node.children))


def _fill_subtree(node: TreeNode) -> None:
    for child in node.children:
        _fill_subtree(child)
    for pair in _pairs_of(node):
        lent = sum(child.subtree.get(pair, 0) - child.kept(pair) for child in node.children)
        node.subtree[pair] = min(UNLIMITED, node.nominal(pair) + lent)


def _refuse_cycle(node: TreeNode) -> None:
    seen = {node.name}
    above = node.parent
    while above is not None:
        if above.name in seen:
            raise InvalidInput(
                f"cohort {node.name} is its own ancestor",
                value=node.name,
                hint="remove one parent from the circle",
            )
        seen.add(above.name)
        above = above.parent
