"""Commands on queues."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from gateway.cli import exits
from gateway.cli.defining import Name, Quotas, Weight, checked, quota_words, read_quotas, update
from gateway.cli.options import Output, given
from gateway.cli.output import Column, Format, show_list, show_one
from gateway.cli.session import client

if TYPE_CHECKING:  # the models cost a tenth of a second, and help needs none
    from gateway.schemas.definitions import QueueView

QUEUE_COLUMNS: "list[Column[QueueView]]" = [
    Column("NAME", lambda queue: queue.name),
    Column("COHORT", lambda queue: queue.cohort or ""),
    Column("STATE", lambda queue: queue.state.value),
    Column("WEIGHT", lambda queue: queue.weight, is_number=True),
    Column("PENDING", lambda queue: queue.pending, is_number=True),
    Column("HELD", lambda queue: queue.held, is_number=True),
    Column("ACTIVE", lambda queue: queue.active, is_number=True),
    Column("QUOTA", lambda queue: quota_words(queue.quotas)),
    Column("NAMESPACES", lambda queue: ",".join(queue.namespaces), is_wide=True),
]


def queue_app() -> typer.Typer:
    """Give the commands below `gateway queue`."""
    app = typer.Typer(no_args_is_help=True, help="Queues: ls, show, create, set, delete, pause.")
    for name, command in (
        ("ls", list_queues),
        ("show", show_queue),
        ("create", create_queue),
        ("set", change_queue),
        ("pause", pause_queue),
        ("resume", resume_queue),
        ("delete", delete_queue),
    ):
        app.command(name)(command)
    return app


def list_queues(output: Output = Format.TABLE) -> None:
    """List queues."""
    show_list(client().queues.list(), QUEUE_COLUMNS, output, name="name")


def show_queue(name: Name, output: Output = Format.TABLE) -> None:
    """Show one queue with its use."""
    queue = client().queues.get(name)
    show_one(queue, _queue_lines(queue), output)


def create_queue(
    name: Name,
    cohort: Annotated[str | None, typer.Option(help="Cohort it belongs to.")] = None,
    weight: Weight = None,
    quota: Quotas = None,
    namespace: Annotated[list[str] | None, typer.Option(help="Who may submit.")] = None,
    default_for: Annotated[list[str] | None, typer.Option(help="Default queue of.")] = None,
) -> None:
    """Create a queue.

    Example: gateway queue create research --cohort lab --quota default/gpu=16,borrow=8
    """
    spec = _spec(cohort, weight, quota, namespace, default_for)
    client().queues.create(checked("QueueSpec", {"name": name, **spec}))
    exits.say(f"queue {name} created")


def change_queue(
    name: Name,
    cohort: Annotated[str | None, typer.Option(help="Cohort it belongs to.")] = None,
    weight: Weight = None,
    quota: Quotas = None,
    namespace: Annotated[list[str] | None, typer.Option(help="Who may submit.")] = None,
    default_for: Annotated[list[str] | None, typer.Option(help="Default queue of.")] = None,
) -> None:
    """Change what is named; quota rows given replace all rows."""
    update(
        client().queues,
        "QueueSpec",
        name,
        _spec(cohort, weight, quota, namespace, default_for),
    )
    exits.say(f"queue {name} changed")


def pause_queue(name: Name) -> None:
    """Stop admitting; what runs goes on."""
    exits.say(f"queue {name}: {client().queues.pause(name).state.value}")


def resume_queue(name: Name) -> None:
    """Admit again."""
    exits.say(f"queue {name}: {client().queues.resume(name).state.value}")


def delete_queue(name: Name) -> None:
    """Delete a queue without live jobs."""
    client().queues.delete(name)
    exits.say(f"queue {name} deleted")


def _spec(
    cohort: str | None,
    weight: int | None,
    quota: list[str] | None,
    namespaces: list[str] | None,
    default_for: list[str] | None,
) -> dict[str, Any]:
    return given(
        cohort=cohort,
        weight=weight,
        quotas=read_quotas(quota),
        namespaces=namespaces or None,
        default_for=default_for or None,
    )


def _queue_lines(queue: "QueueView") -> list[tuple[str, object]]:
    lines: list[tuple[str, object]] = [
        ("name", queue.name),
        ("cohort", queue.cohort),
        ("state", queue.state.value),
        ("weight", queue.weight),
        ("jobs", f"{queue.pending} pending, {queue.held} held, {queue.active} active"),
        ("namespaces", ", ".join(queue.namespaces)),
    ]
    for row in queue.usage:
        words = f"{row.used} used of {row.nominal}, {row.borrowed} borrowed, {row.available} left"
        lines.append((f"{row.flavor}/{row.resource}", words))
    return lines
