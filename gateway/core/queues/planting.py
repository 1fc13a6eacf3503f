"""Building the quota tree's nodes from definitions: who hangs below whom, and which pairs count.

Nothing here knows what is in use; `fill` closes the sums once the queues' use was put in.
"""

from collections.abc import Iterable, Sequence
from itertools import chain

from gateway.core.queues.balance import Balance
from gateway.core.queues.definitions import Cohort, Queue, Quota
from gateway.core.queues.node import TreeNode
from gateway.errors import InvalidInput


class Plantation:
    """Nodes of all trees, linked, each with an empty balance of every pair its root counts."""

    def __init__(self, queues: Sequence[Queue], cohorts: Sequence[Cohort]) -> None:
        """Build and link; raises InvalidInput on a cycle or an unknown parent."""
        self.queues = {queue.name: _node_of(queue) for queue in queues}
        self.cohorts = {cohort.name: _node_of(cohort) for cohort in cohorts}
        self._quotas: dict[TreeNode, tuple[Quota, ...]] = {}
        for cohort in cohorts:
            self._link(self.cohorts[cohort.name], cohort.parent, cohort.quotas)
        for queue in queues:
            self._link(self.queues[queue.name], queue.cohort, queue.quotas)
        # Before anything is summed: on a circle every walk up the tree would be endless.
        for node in self.cohorts.values():
            _refuse_cycle(node)
        every = chain(self.queues.values(), self.cohorts.values())
        self.roots = _in_place(node for node in every if node.parent is None)
        self.orders = [self._grow(root) for root in self.roots]
        """Nodes of each root, parents before children."""

    def _link(self, node: TreeNode, parent: str | None, quotas: tuple[Quota, ...]) -> None:
        """Put a node below its cohort."""
        self._quotas[node] = quotas
        if parent is None:
            return
        if parent not in self.cohorts:
            raise InvalidInput(
                f"{node.name} names the unknown cohort {parent}",
                value=parent,
                allowed=tuple(sorted(self.cohorts)),
                hint="create the cohort first",
            )
        node.parent = self.cohorts[parent]
        node.parent.children.append(node)

    def _grow(self, root: TreeNode) -> list[TreeNode]:
        """Order a root's nodes and give them their balances."""
        order = _in_depth(root)
        rows = {(row.flavor, row.resource) for node in order for row in self._quotas[node]}
        # All nodes get all pairs of their root: a queue without a row has nominal quota 0 and may
        # still borrow, while a pair that no row of the root names is not counted at all.
        pairs = sorted(rows)
        for node in order:
            above = node.parent.balances if node.parent else {}
            node.balances = {pair: Balance(pair=pair, above=above.get(pair)) for pair in pairs}
            for row in self._quotas[node]:
                _enter(node.balances[row.flavor, row.resource], row)
        return order

    def fill(self) -> None:
        """Close the sums from the queues up; their own use must stand already."""
        # Children before parents, so that each sum is complete when it is handed up.
        for order in self.orders:
            for node in reversed(order):
                for balance in node.balances.values():
                    balance.fill()


def _node_of(definition: Queue | Cohort) -> TreeNode:
    return TreeNode(
        name=definition.name,
        is_queue=isinstance(definition, Queue),
        weight=definition.weight,
    )


def _in_place(nodes: Iterable[TreeNode]) -> list[TreeNode]:
    """Sort siblings and number them, so that ties never depend on the order of definitions."""
    ordered = sorted(nodes, key=lambda node: (node.name, not node.is_queue))
    for place, node in enumerate(ordered):
        node.place = place
    return ordered


def _enter(balance: Balance, row: Quota) -> None:
    balance.nominal = row.nominal
    balance.borrowing_limit = row.borrowing_limit
    balance.lending_limit = row.lending_limit


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


def _in_depth(root: TreeNode) -> list[TreeNode]:
    """Give a root's nodes, parents before children, each with its depth."""
    order = [root]
    for node in order:  # grows while it is walked
        node.children = _in_place(node.children)
        for child in node.children:
            child.depth = node.depth + 1
        order += node.children
    return order
