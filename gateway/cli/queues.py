"""Commands on queues."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gateway.cli import exits
from gateway.cli.defining import Name, Quotas, Weight, checked, quota_words, read_quotas, update
from gateway.cli.options import Output, given
from gateway.cli.ordering import order
from gateway.cli.output import Column, Format, show_list, show_one
from gateway.cli.rules import (
    AgeingWords,
    BlockingWord,
    Borrow,
    BudgetWords,
    CapRows,
    Changes,
    Classes,
    Order,
    read_ageing,
    read_budget,
    read_caps,
    read_changes,
    read_names,
    rule_lines,
)
from gateway.cli.session import client

if TYPE_CHECKING:  # the models cost a tenth of a second, and help needs none
    from gateway.schemas.definitions import QueueView

Cohort = Annotated[
    str | None, typer.Option("--cohort", help="Cohort it belongs to.", metavar="COHORT")
]
Submitters = Annotated[
    list[str] | None,
    typer.Option(
        "--namespace", help="Who may submit, * for all; again for more.", metavar="NAMESPACE"
    ),
]
DefaultFor = Annotated[
    list[str] | None,
    typer.Option(
        "--default-for",
        help="Its jobs come here unless they say otherwise; again for more.",
        metavar="NAMESPACE",
    ),
]
Preferred = Annotated[
    list[str] | None,
    typer.Option("--flavor", help="In order of preference; again for more.", metavar="FLAVOR"),
]
QUEUE_COLUMNS: "list[Column[QueueView]]" = [
    Column("NAME", lambda queue: queue.name),
    Column("COHORT", lambda queue: queue.cohort or ""),
    Column("STATE", lambda queue: queue.state.value),
    Column("WEIGHT", lambda queue: queue.weight, is_number=True),
    Column("PENDING", lambda queue: queue.pending, is_number=True),
    Column("HELD", lambda queue: queue.held, is_number=True),
    Column("ACTIVE", lambda queue: queue.active, is_number=True),
    Column("QUOTA", lambda queue: quota_words(queue.quotas)),
    Column("ORDER", lambda queue: queue.order, is_wide=True),
    Column("BLOCKING", lambda queue: queue.blocking.value, is_wide=True),
    Column("NAMESPACES", lambda queue: ",".join(queue.namespaces), is_wide=True),
]


def queue_app() -> typer.Typer:
    """Give the commands below `gateway queue`."""
    app = typer.Typer(
        no_args_is_help=True, help="Queues: ls, show, create, set, order, pause, resume, delete."
    )
    for name, command in (
        ("ls", list_queues),
        ("show", show_queue),
        ("create", create_queue),
        ("set", change_queue),
        ("order", order),
        ("pause", pause_queue),
        ("resume", resume_queue),
        ("delete", delete_queue),
    ):
        app.command(name)(command)
    return app


def list_queues(output: Output = Format.TABLE) -> None:
    """List queues.

    Example:
      gateway queue ls -o wide
    """
    show_list(client().queues.list(), QUEUE_COLUMNS, output, name="name")


def show_queue(name: Name, output: Output = Format.TABLE) -> None:
    """Show one queue with its rules and its use.

    Example:
      gateway queue show research
    """
    queue = client().queues.get(name)
    show_one(queue, _queue_lines(queue), output)


def create_queue(
    name: Name,
    cohort: Cohort = None,
    weight: Weight = None,
    quota: Quotas = None,
    namespace: Submitters = None,
    default_for: DefaultFor = None,
    flavor: Preferred = None,
    order: Order = None,
    ageing: AgeingWords = None,
    blocking: BlockingWord = None,
    when_can_borrow: Borrow = None,
    priority_class: Classes = None,
    cap: CapRows = None,
    budget: BudgetWords = None,
    change: Changes = None,
) -> None:
    """Create a queue.

    Examples:
      gateway queue create research --quota default/gpu=16
      gateway queue create product --cohort lab --quota default/gpu=16,borrow=8
      gateway queue create night --order shortest --cap user_gpus=8 --budget 9/1d
    """
    spec = _spec(
        cohort=cohort,
        weight=weight,
        quotas=quota,
        namespaces=namespace,
        default_for=default_for,
        flavors=flavor,
        order=order,
        ageing=ageing,
        blocking=blocking,
        when_can_borrow=when_can_borrow,
        priority_classes=priority_class,
        caps=cap,
        budget=budget,
        changes=change,
    )
    client().queues.create(checked("QueueSpec", {"name": name, **spec}))
    exits.say(f"queue {name} created")


def change_queue(
    name: Name,
    cohort: Cohort = None,
    weight: Weight = None,
    quota: Quotas = None,
    namespace: Submitters = None,
    default_for: DefaultFor = None,
    flavor: Preferred = None,
    order: Order = None,
    ageing: AgeingWords = None,
    blocking: BlockingWord = None,
    when_can_borrow: Borrow = None,
    priority_class: Classes = None,
    cap: CapRows = None,
    budget: BudgetWords = None,
    change: Changes = None,
) -> None:
    """Change what is named.

    Rows of quota, namespaces, flavors, classes and changes replace all such rows; a cap only
    the one of its name.

    Examples:
      gateway queue set research --cap user_gpus=16 --budget 1000/7d
      gateway queue set research --change 2030-01-31T18:00:00Z,default/gpu=8
      gateway queue set research --ageing none
    """
    changes = _spec(
        cohort=cohort,
        weight=weight,
        quotas=quota,
        namespaces=namespace,
        default_for=default_for,
        flavors=flavor,
        order=order,
        ageing=ageing,
        blocking=blocking,
        when_can_borrow=when_can_borrow,
        priority_classes=priority_class,
        caps=cap,
        budget=budget,
        changes=change,
    )
    update(client().queues, "QueueSpec", name, changes)
    exits.say(f"queue {name} changed")


def pause_queue(name: Name) -> None:
    """Stop admitting; what runs goes on.

    Example:
      gateway queue pause research
    """
    exits.say(f"queue {name}: {client().queues.pause(name).state.value}")


def resume_queue(name: Name) -> None:
    """Admit again.

    Example:
      gateway queue resume research
    """
    exits.say(f"queue {name}: {client().queues.resume(name).state.value}")


def delete_queue(name: Name) -> None:
    """Delete a queue without live jobs.

    Example:
      gateway queue delete research
    """
    client().queues.delete(name)
    exits.say(f"queue {name} deleted")


READERS: dict[str, Callable[[Any], Any]] = {
    "quotas": read_quotas,
    "ageing": read_ageing,
    "priority_classes": read_names,
    "caps": read_caps,
    "budget": read_budget,
    "changes": read_changes,
}
"""How the words of an option become a field; others are taken as they are."""


def _spec(**options: Any) -> dict[str, Any]:
    """Give the fields of the options that were given; an empty list is none."""
    # Typer gives an empty list for an option that was left out; `none` says that rows shall go.
    said = {name: value for name, value in given(**options).items() if value != []}
    return {
        name: READERS[name](value) if name in READERS else value for name, value in said.items()
    }


def _queue_lines(queue: "QueueView") -> list[tuple[str, object]]:
    lines: list[tuple[str, object]] = [
        ("name", queue.name),
        ("cohort", queue.cohort),
        ("state", queue.state.value),
        ("weight", queue.weight),
        ("jobs", f"{queue.pending} pending, {queue.held} held, {queue.active} active"),
        ("namespaces", ", ".join(queue.namespaces)),
        ("flavors", ", ".join(queue.flavors)),
        ("quota", quota_words(queue.quotas)),
        *rule_lines(queue),
    ]
    for row in queue.usage:
        words = f"{row.used} used of {row.nominal}, {row.borrowed} borrowed, {row.available} left"
        lines.append((f"{row.flavor}/{row.resource}", words))
    return lines
