"""The quota tree with its usage: what is available where, and what an admission charges.

It may live across cycles: use comes in by `charge` and `refund`, a pass can be taken back to a
mark, and definitions that changed give a new tree with the same use. Who may charge is not
judged here; UNLIMITED is large enough to survive addition and is never charged against.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from gateway.core.queues.balance import Balance, Pair
from gateway.core.queues.definitions import Cohort, Queue
from gateway.core.queues.node import TreeNode, borrowed, node_available, node_potential, top_of
from gateway.core.queues.planting import Plantation

__all__ = [
    "Pair",
    "QuotaTree",
    "TreeNode",
    "UsageRow",
    "borrowed",
    "node_available",
    "node_potential",
    "top_of",
]

UsageRow = tuple[str, Pair, int]
"""(queue, pair, amount in use)."""


class QuotaTree:
    """All queues and cohorts; the figures change by charges and protections only."""

    def __init__(
        self, queues: Sequence[Queue], cohorts: Sequence[Cohort], usage: Iterable[UsageRow] = ()
    ) -> None:
        """Build the tree with what is in use; raises InvalidInput on a cycle or unknown parent."""
        planted = Plantation(queues, cohorts)
        self.queues, self.cohorts, self.roots = planted.queues, planted.cohorts, planted.roots
        # One dict look-up less for each pair: these are the most frequent reads of a pass.
        self._leaves = {name: node.balances for name, node in self.queues.items()}
        self._uncounted: dict[tuple[str, Pair], Balance] = {}
        self._protected = 0
        """Balances that protect something."""
        self._undo: list[tuple[Balance, int, int]] | None = None
        """Balance with the use and protection it had before; None while nobody wants to go back."""
        # Into the queues only; `fill` then adds it up level by level, once.
        for queue, pair, amount in usage:
            self._balance(queue, pair).used += amount
        planted.fill()
        self.keeps = any(
            balance.kept
            for order in planted.orders
            for node in order
            for balance in node.balances.values()
        )
        """Whether any node keeps quota from the others, so that not all use reaches the top."""
        self.share_bits = _share_bits(planted.orders)
        """Binary places after the point in which any two different shares differ."""

    def with_definitions(self, queues: Sequence[Queue], cohorts: Sequence[Cohort]) -> "QuotaTree":
        """Give the tree of other definitions with the same use, summed up anew from its queues.

        Refunds under other limits than were charged would leave wrong sums, so limits never change
        inside a tree. Protections and marks end with the old one.
        """
        return QuotaTree(queues, cohorts, self.usage())

    def usage(self) -> Iterator[UsageRow]:
        """Give what each queue uses, also of pairs and queues that no definition names now."""
        for name, balances in self._leaves.items():
            for pair, balance in balances.items():
                if balance.used:
                    yield name, pair, balance.used
        for (name, pair), balance in self._uncounted.items():
            if balance.used:
                yield name, pair, balance.used

    def root_of(self, queue: str) -> TreeNode:
        """Give the top of a queue's tree."""
        return top_of(self.queues[queue])

    def path(self, queue: str) -> list[TreeNode]:
        """Give the nodes from the queue up to its root."""
        node: TreeNode | None = self.queues[queue]
        path = []
        while node is not None:
            path.append(node)
            node = node.parent
        return path

    def is_counted(self, queue: str, pair: Pair) -> bool:
        """Whether a pair is limited at all: listed anywhere in the queue's root."""
        return pair in self._leaves[queue]

    def counted(self, queue: str, charges: Mapping[Pair, int]) -> dict[Pair, int]:
        """Give the part of a request that quota counts, by name."""
        leaf = self._leaves[queue]
        return {pair: amount for pair, amount in sorted(charges.items()) if pair in leaf}

    def has_room(self, queue: str, charges: Mapping[Pair, int]) -> bool:
        """Whether every counted pair of a request has enough left."""
        leaf, beside = self._leaves[queue], self._protected
        # The first pair that lacks ends it: most requests that fail, fail on their first pair.
        for pair, amount in charges.items():
            # Not a pair of this tree: nobody limits it, and placement alone decides.
            balance = leaf.get(pair)
            if balance is None:
                continue
            available = balance.available_beside() if beside else balance.available()
            if available < amount:
                return False
        return True

    def is_kept_off(self, queue: str, charges: Mapping[Pair, int]) -> bool:
        """Whether a request would have room if no other queue protected anything."""
        if not self._protected or self.has_room(queue, charges):
            return False
        leaf = self._leaves[queue]
        return all(
            leaf[pair].available() >= amount for pair, amount in charges.items() if pair in leaf
        )

    def available(self, queue: str, pair: Pair) -> int:
        """Give what the queue may still take beside what others protect; 0 when not counted.

        Negative after its quota was cut below its use.
        """
        balance = self._leaves[queue].get(pair)
        if balance is None:
            return 0
        return balance.available_beside() if self._protected else balance.available()

    def potential(self, queue: str, pair: Pair) -> int:
        """Give what the queue could take at most with everything else idle."""
        return node_potential(self.queues[queue], pair)

    def charge(self, queue: str, pair: Pair, amount: int) -> None:
        """Add to a queue's usage and pass on what it does not keep.

        Use of uncounted pairs and unknown queues limits nobody, but is remembered.
        """
        balance = self._balance(queue, pair)
        if self._undo is not None:
            self._undo.append((balance, balance.used, balance.wanted))
        # Without any protection the short walk does, for less than half the time.
        if self._protected:
            balance.restate(balance.used + amount, balance.wanted)
        else:
            balance.add(amount)

    def refund(self, queue: str, pair: Pair, amount: int) -> None:
        """Take back exactly what `charge` added."""
        self.charge(queue, pair, -amount)

    def protect(self, queue: str, charges: Mapping[Pair, int]) -> None:
        """Count a request as used for all other queues, as far as unused nominal quota covers it.

        The amount follows what the queue itself charges. A queue protects one request; a second
        takes the place of the first. Shares are not changed.
        """
        # The first blocked candidate of a queue is the one with a claim; an older claim is over.
        self.unprotect(queue)
        leaf = self._leaves[queue]
        for pair, amount in charges.items():
            if amount and pair in leaf:
                self._want(leaf[pair], amount)

    def unprotect(self, queue: str) -> None:
        """End a queue's protection, if it has one."""
        for balance in self._leaves[queue].values():
            if balance.wanted:
                self._want(balance, 0)

    def mark(self) -> int:
        """Give the present state a number for `back_to`; from now on changes are written down."""
        if self._undo is None:
            self._undo = []
        return len(self._undo)

    def back_to(self, mark: int) -> None:
        """Take back every charge, refund and protection since a mark, which stays valid."""
        changes = self._undo
        # A silent success here would leave the tree with use that nobody has.
        if changes is None or mark > len(changes):
            raise ValueError(f"mark {mark} was given before changes were kept or taken back")
        # All nodes above are a function of the queues' figures, so only the earliest ones count.
        earliest = {each[0]: each[1:] for each in reversed(changes[mark:])}
        del changes[mark:]
        for balance, figures in earliest.items():
            self._restate(balance, *figures)

    def keep(self) -> None:
        """Make all changes final: marks end, and changes are no longer written down."""
        self._undo = None

    def _want(self, balance: Balance, amount: int) -> None:
        if self._undo is not None:
            self._undo.append((balance, balance.used, balance.wanted))
        self._restate(balance, balance.used, amount)

    def _restate(self, balance: Balance, used: int, wanted: int) -> None:
        if not self._protected and not wanted:
            balance.add(used - balance.used)
            return
        # Counted, so that a tree without protections may take the short walks everywhere.
        self._protected += bool(wanted) - bool(balance.wanted)
        balance.restate(used, wanted)

    def _balance(self, queue: str, pair: Pair) -> Balance:
        """Give a queue's balance; one outside the tree where quota does not count."""
        leaf = self._leaves.get(queue)
        balance = leaf.get(pair) if leaf else None
        if balance is None:
            balance = self._uncounted.get((queue, pair))
        if balance is None:
            balance = self._uncounted[queue, pair] = Balance(pair=pair, above=None)
        return balance


def _share_bits(orders: list[list[TreeNode]]) -> int:
    """Give twice the bits of the largest possible whole of a share.

    Two different ratios of whole numbers, neither divided by more than D, differ by at least one
    part in D * D.
    """
    # An upper bound will do, and costs one sum: a few bits too many change no comparison.
    owned = [sum(sum(node.subtree.values()) for node in order) for order in orders]
    weights = [node.weight for order in orders for node in order]
    return 2 * (max(owned, default=0) * max(1, *weights, 1)).bit_length()
