"""Commands on flavors."""

from typing import TYPE_CHECKING, Annotated

import typer

from gateway.cli import exits
from gateway.cli.defining import Name, checked, update
from gateway.cli.options import Output
from gateway.cli.output import Column, Format, labelled, show_list, show_one
from gateway.cli.session import client
from gateway.errors import InvalidInput

if TYPE_CHECKING:  # the models cost a tenth of a second, and help needs none
    from gateway.schemas.definitions import FlavorView

Labels = Annotated[
    list[str] | None,
    typer.Option("--label", help="Of its nodes; again for more.", metavar="KEY=VALUE"),
]
FLAVOR_COLUMNS: "list[Column[FlavorView]]" = [
    Column("NAME", lambda flavor: flavor.name),
    Column("NODE LABELS", lambda flavor: _labels(flavor.node_labels) or "every node"),
    Column("TOLERATIONS", lambda flavor: len(flavor.tolerations), is_number=True),
]


def flavor_app() -> typer.Typer:
    """Give the commands below `gateway flavor`."""
    app = typer.Typer(no_args_is_help=True, help="Flavors: ls, show, create, set, delete.")
    for name, command in (
        ("ls", list_flavors),
        ("show", show_flavor),
        ("create", create_flavor),
        ("set", change_flavor),
        ("delete", delete_flavor),
    ):
        app.command(name)(command)
    return app


def list_flavors(output: Output = Format.TABLE) -> None:
    """List flavors.

    Example:
      gateway flavor ls
    """
    show_list(client().flavors.list(), FLAVOR_COLUMNS, output, name="name")


def show_flavor(name: Name, output: Output = Format.TABLE) -> None:
    """Show one flavor.

    Example:
      gateway flavor show h100
    """
    flavor = client().flavors.get(name)
    show_one(flavor, labelled(flavor, FLAVOR_COLUMNS), output)


def create_flavor(name: Name, label: Labels = None) -> None:
    """Create a flavor: a kind of node by labels.

    Example:
      gateway flavor create h100 --label gpu=h100
    """
    spec = {"name": name, "node_labels": _pairs(label or [])}
    client().flavors.create(checked("FlavorSpec", spec))
    exits.say(f"flavor {name} created")


def change_flavor(name: Name, label: Labels = None) -> None:
    """Replace a flavor's labels.

    Example:
      gateway flavor set h100 --label gpu=h100 --label pool=training
    """
    # A flavor without labels is every node: that must not come of an option left out.
    if not label:
        raise typer.BadParameter("give --label KEY=VALUE; all labels are replaced")
    update(client().flavors, "FlavorSpec", name, {"node_labels": _pairs(label)})
    exits.say(f"flavor {name} changed")


def delete_flavor(name: Name) -> None:
    """Delete a flavor that no quota names.

    Example:
      gateway flavor delete h100
    """
    client().flavors.delete(name)
    exits.say(f"flavor {name} deleted")


def _pairs(items: list[str]) -> dict[str, str]:
    pairs = dict(map(_pair, items))
    if len(pairs) != len(items):
        raise InvalidInput(
            "a label is given twice", pointer="--label", value=" ".join(items), hint="keep one"
        )
    return pairs


def _pair(item: str) -> tuple[str, str]:
    key, equals, value = item.partition("=")
    if not key or not equals:
        raise InvalidInput(
            "a label is KEY=VALUE", pointer="--label", value=item, hint="--label gpu=h100"
        )
    return key, value


def _labels(labels: dict[str, str]) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items()))
