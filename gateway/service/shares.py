"""Shows who has how much of what, from live use and the definitions as they stand now."""

from dataclasses import asdict

from gateway.core.queues.dated import definitions_at
from gateway.core.queues.overview import NodeStanding, PairStanding, overview
from gateway.core.queues.tree import QuotaTree
from gateway.db.definition_reading import read_definitions
from gateway.db.definitions import live_usage
from gateway.errors import NotFound
from gateway.schemas.order import ShareNode, ShareRow, SharesView
from gateway.service.context import Gateway


def all_shares(gateway: Gateway) -> SharesView:
    """Give every tree."""
    return _view(overview(_tree(gateway)))


def queue_shares(gateway: Gateway, name: str) -> SharesView:
    """Give the tree that a queue is in; raises NotFound."""
    tree = _tree(gateway)
    if name not in tree.queues:
        raise NotFound(
            f"queue {name[:64]!r} does not exist",
            value=name[:64],
            allowed=tuple(sorted(tree.queues)),
            hint="list them with: gateway queue ls",
        )
    return _view(overview(tree, name))


def _tree(gateway: Gateway) -> QuotaTree:
    with gateway.database.read() as connection:
        found = read_definitions(connection)
        usage = live_usage(connection)
    queues, cohorts = definitions_at(found.queues, found.cohorts, gateway.clock.now_us())
    known = {queue.name for queue in queues}
    rows = (
        (queue, (flavor, resource), amount)
        for (queue, flavor, resource), amount in usage.items()
        if queue in known
    )
    return QuotaTree(queues, cohorts, rows)


def _view(nodes: tuple[NodeStanding, ...]) -> SharesView:
    return SharesView(nodes=tuple(map(_node, nodes)))


def _node(node: NodeStanding) -> ShareNode:
    return ShareNode(
        name=node.name,
        kind="queue" if node.is_queue else "cohort",
        parent=node.parent,
        depth=node.depth,
        weight=node.weight,
        # People compare these by eye; the contest compares exact numbers.
        share=round(node.share, 6),
        resource=node.resource,
        rows=tuple(map(_row, node.rows)),
    )


def _row(row: PairStanding) -> ShareRow:
    fields = asdict(row)
    flavor, resource = fields.pop("pair")
    return ShareRow(flavor=flavor, resource=resource, **fields)
