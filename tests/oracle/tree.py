"""The quota tree from its leaves, each time: Kueue's arithmetic (KEP-79) as it is written down.

A node is (kind, name), for a queue and a cohort may share a name. Usage is what queues use, by
(queue, pair); everything above them is summed up when it is asked for.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from gateway.core.admission import Snapshot
from gateway.core.queues.definitions import Cohort, Queue, Quota
from gateway.core.vocabulary import UNLIMITED

Pair = tuple[str, str]
Charges = Mapping[Pair, int]
Node = tuple[str, str]
Used = Mapping[tuple[str, Pair], int]


class Row(NamedTuple):
    """One quota row as it stands at an instant."""

    nominal: int = 0
    borrowing_limit: int = UNLIMITED
    lending_limit: int = UNLIMITED


class Tree(NamedTuple):
    """Who hangs where, with which rows and weight."""

    parents: dict[Node, Node | None]
    rows: dict[Node, dict[Pair, Row]]
    weights: dict[Node, int]


def tree_at(snapshot: Snapshot, now_us: int) -> Tree:
    """Give the tree with the dated changes that have come."""
    queues: list[tuple[Node, Queue | Cohort, str | None]] = [
        (("queue", each.name), each, each.cohort) for each in snapshot.queues
    ]
    cohorts: list[tuple[Node, Queue | Cohort, str | None]] = [
        (("cohort", each.name), each, each.parent) for each in snapshot.cohorts
    ]
    return Tree(
        parents={node: ("cohort", above) if above else None for node, _, above in queues + cohorts},
        rows={node: rows_at(each, now_us) for node, each, _ in queues + cohorts},
        weights={node: each.weight for node, each, _ in queues + cohorts},
    )


def rows_at(definition: Queue | Cohort, now_us: int) -> dict[Pair, Row]:
    """Replace values by those of the changes up to now: by instant, then by position."""
    rows = {(each.flavor, each.resource): _row(each) for each in definition.quotas}
    for change in sorted(definition.changes, key=lambda each: each.at_us):
        if change.at_us <= now_us:
            pair = (change.flavor, change.resource)
            old = rows.get(pair, Row())
            rows[pair] = Row(
                old.nominal if change.nominal is None else change.nominal,
                old.borrowing_limit if change.borrowing_limit is None else change.borrowing_limit,
                old.lending_limit if change.lending_limit is None else change.lending_limit,
            )
    return rows


def _row(quota: Quota) -> Row:
    return Row(quota.nominal, quota.borrowing_limit, quota.lending_limit)


def children(tree: Tree, node: Node | None) -> list[Node]:
    """Give the nodes below; of None the roots."""
    return [child for child, parent in tree.parents.items() if parent == node]


def path(tree: Tree, node: Node) -> list[Node]:
    """Give the nodes from this one up to its root."""
    above = tree.parents[node]
    return [node, *(path(tree, above) if above else ())]


def pairs_below(tree: Tree, node: Node) -> set[Pair]:
    """Give every pair that has a row somewhere in the subtree."""
    below = [pairs_below(tree, child) for child in children(tree, node)]
    return set(tree.rows[node]).union(*below)


def counted(tree: Tree, queue: str, charges: Charges) -> dict[Pair, int]:
    """Give what quota counts of a request: pairs listed anywhere in the queue's root."""
    listed = pairs_below(tree, path(tree, ("queue", queue))[-1])
    return {pair: amount for pair, amount in charges.items() if pair in listed}


def plus(used: Used, queue: str, charges: Charges) -> Used:
    """Give the usage with a request of a queue added."""
    added = {(queue, pair): used.get((queue, pair), 0) + charges[pair] for pair in charges}
    return {**used, **added}


def quota(tree: Tree, node: Node, pair: Pair) -> int:
    """Q: own nominal and what the children lend."""
    lent = [quota(tree, child, pair) - kept(tree, child, pair) for child in children(tree, node)]
    return min(UNLIMITED, tree.rows[node].get(pair, Row()).nominal + sum(lent))


def kept(tree: Tree, node: Node, pair: Pair) -> int:
    """L: the part of Q that is never lent."""
    limit = tree.rows[node].get(pair, Row()).lending_limit
    return max(0, quota(tree, node, pair) - limit) if limit < UNLIMITED else 0


def usage(tree: Tree, used: Used, node: Node, pair: Pair) -> int:
    """U: of a queue its own, of a cohort what its children use beyond what they keep."""
    kind, name = node
    if kind == "queue":
        return used.get((name, pair), 0)
    return sum(
        max(0, usage(tree, used, child, pair) - kept(tree, child, pair))
        for child in children(tree, node)
    )


def own_left(tree: Tree, used: Used, node: Node, pair: Pair) -> int:
    """LA: what is left of the part that is never lent."""
    return max(0, kept(tree, node, pair) - usage(tree, used, node, pair))


def limit_left(tree: Tree, used: Used, node: Node, pair: Pair) -> int:
    """Give the most that a node's borrowing limit lets it still take from above."""
    limit = tree.rows[node].get(pair, Row()).borrowing_limit
    if limit >= UNLIMITED:
        return UNLIMITED
    keeps = kept(tree, node, pair)
    passed_up = max(0, usage(tree, used, node, pair) - keeps)
    return quota(tree, node, pair) - keeps - passed_up + limit


def available(tree: Tree, used: Used, node: Node, pair: Pair) -> int:
    """A: what the node may still take; negative after a cut."""
    above = tree.parents[node]
    if above is None:
        return quota(tree, node, pair) - usage(tree, used, node, pair)
    from_above = available(tree, used, above, pair)
    return own_left(tree, used, node, pair) + min(from_above, limit_left(tree, used, node, pair))


def potential(tree: Tree, node: Node, pair: Pair) -> int:
    """PA: the most the node could take with everything idle."""
    above = tree.parents[node]
    most = quota(tree, node, pair)
    if above is None:
        return most
    total = kept(tree, node, pair) + potential(tree, above, pair)
    limit = tree.rows[node].get(pair, Row()).borrowing_limit
    return min(total, most + limit) if limit < UNLIMITED else total


def has_room(tree: Tree, used: Used, queue: str, charges: Charges) -> bool:
    """Whether every counted pair of a request is available."""
    wanted = counted(tree, queue, charges)
    node = ("queue", queue)
    return all(available(tree, used, node, pair) >= wanted[pair] for pair in wanted)


def grows_beyond(tree: Tree, used: Used, node: Node, pairs: Iterable[Pair]) -> bool:
    """Whether a node uses more than its own quota of one of these pairs."""
    return any(usage(tree, used, node, pair) > quota(tree, node, pair) for pair in pairs)
