"""Fairness policies: whose head comes next across queues, by a tournament up the quota tree."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from gateway.core.queues.share import Share, borrows, dominant_share, root_share
from gateway.core.queues.tree import Pair, QuotaTree, TreeNode


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A queue's head, with what its admission would charge."""

    queue: str
    row: int
    submitted_us: int
    charges: Mapping[Pair, int]
    """What quota counts of its request; pairs that nobody limits are left out."""


class FairnessPolicy(Protocol):
    """Choose between queues."""

    def __call__(self, tree: QuotaTree, heads: Mapping[str, Candidate]) -> Candidate:
        """Give the head that comes next; `heads` is not empty."""


def dominant_share_first(tree: QuotaTree, heads: Mapping[str, Candidate]) -> Candidate:
    """At each cohort: who does not borrow, then the lower share after admission, then the older."""
    winners = [
        (_root_key(root, winner), winner)
        for root in tree.roots
        if (winner := _winner(root, heads)) is not None
    ]
    return min(winners, key=lambda entry: entry[0])[1]


def _winner(node: TreeNode, heads: Mapping[str, Candidate]) -> Candidate | None:
    if node.is_queue:
        return heads.get(node.name)
    entries = [
        (_child_key(child, candidate), candidate)
        for child in node.children
        if (candidate := _winner(child, heads)) is not None
    ]
    return min(entries, key=lambda entry: entry[0])[1] if entries else None


def _child_key(child: TreeNode, candidate: Candidate) -> tuple[bool, Share, int, str, bool]:
    return (
        borrows(child, candidate.charges),
        dominant_share(child, candidate.charges),
        candidate.submitted_us,
        child.name,
        child.is_queue,
    )


def _root_key(root: TreeNode, candidate: Candidate) -> tuple[Share, int, str, bool]:
    share = root_share(root, candidate.charges)
    return share, candidate.submitted_us, root.name, root.is_queue


FAIRNESS: dict[str, FairnessPolicy] = {"dominant_share": dominant_share_first}
