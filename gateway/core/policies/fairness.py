"""Fairness policies: whose head comes next across queues.

A policy makes a contest for a quota tree; heads are put in, and the contest is told whose queue
was charged. Nothing here charges, tries or orders the jobs of one queue.
"""

from bisect import bisect_left, insort
from collections.abc import Mapping
from typing import NamedTuple, Protocol

from gateway.core.queues.share import borrows, reaching, share_after
from gateway.core.queues.tree import Pair, QuotaTree, TreeNode


class Candidate(NamedTuple):
    """A queue's head, with what its admission would charge."""

    queue: str
    row: int
    submitted_us: int
    charges: Mapping[Pair, int]
    """What quota counts of its request; pairs that nobody limits are left out."""
    rank: int = 0
    """Value of its priority class; higher comes first where shares are equal."""


class Contest(Protocol):
    """Heads of queues that compete for being next."""

    def put(self, head: Candidate) -> None:
        """Let a queue compete with this head, in place of the one it had."""

    def withdraw(self, queue: str) -> None:
        """Take a queue's head out, if it has one."""

    def refresh(self, queue: str) -> None:
        """Say that a queue's use changed."""

    def best(self) -> Candidate | None:
        """Give the head that comes next; None when nobody competes. It stays in."""


class FairnessPolicy(Protocol):
    """Choose between queues."""

    def __call__(self, tree: QuotaTree, /) -> Contest:
        """Give an empty contest on a tree, which others charge."""


Key = tuple[bool, bool, int, int, int, int]
"""Borrows for this request, is of weight 0 with a share, share, -rank, submitted, place."""


class _Entrant:
    """A tree node in the tournament, or the top above all roots."""

    __slots__ = ("above", "below", "best", "key", "line")

    def __init__(self, above: "_Entrant | None" = None) -> None:
        # The top is its own above, so that the walk needs no special case.
        self.above = above or self
        self.best: Candidate | None = None
        self.key: Key | None = None
        self.line: list[Key] = []
        """Keys of the children that compete, best first; each ends with the child's place."""
        self.below: dict[int, _Entrant] = {}

    def choose(self) -> None:
        """Take over the best of the children."""
        self.best = self.below[self.line[0][-1]].best if self.line else None


class Tournament:
    """At each cohort: who does not borrow, then the lower share after admission, then by age.

    Roots compete by the use of their own quota. A change costs only the keys on its queue's path,
    and those are computed when the best is asked for, so several changes of a path cost one.
    """

    def __init__(self, tree: QuotaTree) -> None:
        """Start with nobody; costs nothing for queues that never compete."""
        self._tree = tree
        self._top = _Entrant()
        self._entrants: dict[TreeNode, _Entrant] = {}
        self._stale: list[dict[_Entrant, TreeNode]] = []
        """Entrants whose keys are out of date, by their depth in the tree."""

    def put(self, head: Candidate) -> None:
        """Let a queue compete with this head, in place of the one it had."""
        self._outdated(head.queue).best = head

    def withdraw(self, queue: str) -> None:
        """Take a queue's head out, if it has one."""
        self._outdated(queue).best = None

    def refresh(self, queue: str) -> None:
        """Say that a queue's use changed."""
        self._outdated(queue)

    def best(self) -> Candidate | None:
        """Give the head that comes next; None when nobody competes. It stays in."""
        # From the leaves up: a child has to be right before its parent chooses.
        for stale in reversed(self._stale):
            for entrant, node in stale.items():
                self._seed(entrant, node)
            stale.clear()
        self._top.choose()
        return self._top.best

    def _outdated(self, queue: str) -> _Entrant:
        node = self._tree.queues[queue]
        entrant = self._entrants.get(node) or self._enter(node)
        self._stale[node.depth][entrant] = node
        return entrant

    def _enter(self, node: TreeNode) -> _Entrant:
        """Give a node's entrant, with those above it."""
        known = self._entrants.get(node)
        if known is not None:
            return known
        above = self._enter(node.parent) if node.parent else self._top
        while len(self._stale) <= node.depth:
            self._stale.append({})
        entrant = self._entrants[node] = above.below[node.place] = _Entrant(above)
        return entrant

    def _seed(self, entrant: _Entrant, node: TreeNode) -> None:
        """Put an entrant where it belongs in its line; whoever is above is out of date then."""
        if not node.is_queue:
            entrant.choose()
        above = entrant.above
        line = above.line
        if entrant.key is not None:
            # Keys end with the child's place, so no two are equal and the search finds this very
            # one.
            del line[bisect_left(line, entrant.key)]
        entrant.key = None if entrant.best is None else self._key(node, entrant.best)
        if entrant.key is not None:
            insort(line, entrant.key)
        if node.parent is not None:
            self._stale[node.depth - 1][above] = node.parent

    def _key(self, node: TreeNode, head: Candidate) -> Key:
        charges = head.charges
        if self._tree.keeps:
            charges = reaching(self._tree.queues[head.queue], node, charges)
        share = share_after(node, charges, self._tree.share_bits)
        return (
            borrows(node, charges),
            # Within its own quota a node of weight 0 competes like everybody else.
            # Infinite shares would not compare among themselves; so they come last, by plain share.
            share > 0 and not node.weight,
            share,
            # Only the class of the admins counts here; a user's own number ends at its queue.
            -head.rank,
            head.submitted_us,
            node.place,
        )


FAIRNESS: dict[str, FairnessPolicy] = {"dominant_share": Tournament}
