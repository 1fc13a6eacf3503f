"""The command that draws who has how much of what: one bar for each resource of each node."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from gateway.cli import exits
from gateway.cli.options import Output
from gateway.cli.output import Format, console, show_data
from gateway.cli.session import client
from gateway.cli.terminal import clean, cores, gibibytes

if TYPE_CHECKING:  # the models cost a tenth of a second, and help needs none
    from gateway.schemas.order import ShareNode, ShareRow

WIDTH = 80
BAR = 22
LABEL = 20
"""Characters of a row's flavor and resource."""


def share(
    queue: Annotated[
        str | None, typer.Argument(help="Only the tree that this queue is in.", metavar="QUEUE")
    ] = None,
    output: Output = Format.TABLE,
) -> None:
    """Show who has how much of what.

    Node by node of the tree, as bars: # used, + borrowed, . unused, | entitled.

    A share is what a node borrows of what its cohort can hold, over its weight: the lower one comes
    first. Its entitlement is what its weight gives it of what the cohort can lend.

    Examples:
      gateway share
      gateway share research
    """
    view = client().queues.shares(queue)
    if output is not Format.TABLE:
        show_data(view.model_dump(mode="json"), output)
        return
    for line in share_lines(view.nodes):
        console().print(clean(line), markup=False, soft_wrap=True)
    if not any(node.rows for node in view.nodes):
        exits.say("no queue has quota; everything is shared without limits")


def share_lines(nodes: "tuple[ShareNode, ...]") -> Iterator[str]:
    """Draw the tree, at most WIDTH characters wide; nodes in it without quota have their name."""
    for node in nodes:
        indent = "  " * min(node.depth, 4)
        told = f" by {node.resource}" if node.resource else ""
        name = f"{indent}{node.name} ({node.kind})"
        yield f"{name:<42} weight {node.weight}, share {node.share:g}{told}"[:WIDTH]
        for row in node.rows:
            yield f"{indent}  {_row(row, LABEL - len(indent))}"[:WIDTH]


def _row(row: "ShareRow", width: int) -> str:
    own, entitled = _amount(row, row.subtree), _amount(row, row.entitlement)
    borrowed = f" +{_amount(row, row.borrowed)}" if row.borrowed else ""
    figures = f"{_amount(row, row.used)}/{own}{borrowed}, entitled {entitled}"
    label = f"{row.flavor}/{row.resource}"
    return f"{label:<{width}.{width}} [{_bar(row)}] {figures}"


def _bar(row: "ShareRow") -> str:
    """Draw one row; its whole length is the largest of what is owned, used and entitled."""
    whole = max(row.subtree or 0, row.used, row.entitlement or 0)
    if not whole:
        return "." * BAR
    # Rounded up, so that little is not nothing.
    used = -(-BAR * row.used // whole)
    own = -(-BAR * (row.used - row.borrowed) // whole)
    bar = ["#"] * own + ["+"] * (used - own) + ["."] * (BAR - used)
    if row.entitlement:
        bar[max(0, -(-BAR * row.entitlement // whole) - 1)] = "|"
    return "".join(bar)


def _amount(row: "ShareRow", amount: int | None) -> str:
    if amount is None:
        return "no limit"
    return {"cpu": cores, "memory": gibibytes}.get(row.resource, str)(amount)
