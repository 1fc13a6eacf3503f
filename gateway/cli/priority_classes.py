"""Commands on priority classes."""

from typing import TYPE_CHECKING, Annotated

import typer

from gateway.cli import exits
from gateway.cli.defining import Name, checked, update
from gateway.cli.options import Output
from gateway.cli.output import Column, Format, labelled, show_list, show_one
from gateway.cli.session import client

if TYPE_CHECKING:  # the models cost a tenth of a second, and help needs none
    from gateway.schemas.definitions import PriorityClassView

Value = Annotated[
    int, typer.Argument(help="Higher runs sooner, across queues too.", metavar="VALUE")
]
CLASS_COLUMNS: "list[Column[PriorityClassView]]" = [
    Column("NAME", lambda level: level.name),
    Column("VALUE", lambda level: level.value, is_number=True),
]


def priority_class_app() -> typer.Typer:
    """Give the commands below `gateway priority-class`."""
    words = "Priority classes: ls, show, create, set, delete."
    app = typer.Typer(no_args_is_help=True, help=words)
    for name, command in (
        ("ls", list_classes),
        ("show", show_class),
        ("create", create_class),
        ("set", change_class),
        ("delete", delete_class),
    ):
        app.command(name)(command)
    return app


def list_classes(output: Output = Format.TABLE) -> None:
    """List priority classes.

    Example:
      gateway priority-class ls
    """
    show_list(client().priority_classes.list(), CLASS_COLUMNS, output, name="name")


def show_class(name: Name, output: Output = Format.TABLE) -> None:
    """Show one priority class.

    Example:
      gateway priority-class show urgent
    """
    level = client().priority_classes.get(name)
    show_one(level, labelled(level, CLASS_COLUMNS), output)


def create_class(name: Name, value: Value) -> None:
    """Create a priority class.

    Queues allow it by their option --priority-class.

    Example:
      gateway priority-class create urgent 100
    """
    # Checked here, so that a value out of range costs no request.
    spec = {"name": name, "value": value}
    client().priority_classes.create(checked("PriorityClassSpec", spec))
    exits.say(f"priority class {name} created")


def change_class(name: Name, value: Value) -> None:
    """Give a class another value.

    It counts for jobs that wait already, too.

    Example:
      gateway priority-class set urgent 200
    """
    update(client().priority_classes, "PriorityClassSpec", name, {"value": value})
    exits.say(f"priority class {name} changed")


def delete_class(name: Name) -> None:
    """Delete a class that no queue allows and no live job has.

    Example:
      gateway priority-class delete urgent
    """
    client().priority_classes.delete(name)
    exits.say(f"priority class {name} deleted")
