"""Commands on cohorts."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from gateway.cli import exits
from gateway.cli.defining import Name, Quotas, Weight, checked, quota_words, read_quotas, update
from gateway.cli.options import Output, given
from gateway.cli.output import Column, Format, labelled, show_list, show_one
from gateway.cli.rules import Changes, change_words, read_changes
from gateway.cli.session import client

if TYPE_CHECKING:  # the models cost a tenth of a second, and help needs none
    from gateway.schemas.definitions import CohortView

COHORT_COLUMNS: "list[Column[CohortView]]" = [
    Column("NAME", lambda cohort: cohort.name),
    Column("PARENT", lambda cohort: cohort.parent or ""),
    Column("WEIGHT", lambda cohort: cohort.weight, is_number=True),
    Column("QUOTA", lambda cohort: quota_words(cohort.quotas)),
]


def cohort_app() -> typer.Typer:
    """Give the commands below `gateway cohort`."""
    app = typer.Typer(no_args_is_help=True, help="Cohorts: ls, show, create, set, delete.")
    for name, command in (
        ("ls", list_cohorts),
        ("show", show_cohort),
        ("create", create_cohort),
        ("set", change_cohort),
        ("delete", delete_cohort),
    ):
        app.command(name)(command)
    return app


def list_cohorts(output: Output = Format.TABLE) -> None:
    """List cohorts.

    Example:
      gateway cohort ls
    """
    show_list(client().cohorts.list(), COHORT_COLUMNS, output, name="name")


def show_cohort(name: Name, output: Output = Format.TABLE) -> None:
    """Show one cohort.

    Example:
      gateway cohort show lab
    """
    cohort = client().cohorts.get(name)
    changes = [("change", change_words(change)) for change in cohort.changes]
    show_one(cohort, [*labelled(cohort, COHORT_COLUMNS), *changes], output)


def create_cohort(
    name: Name,
    parent: Annotated[str | None, typer.Option(help="Cohort above.", metavar="COHORT")] = None,
    weight: Weight = None,
    quota: Quotas = None,
    change: Changes = None,
) -> None:
    """Create a cohort, whose children lend to each other.

    What a child does not use of its quota, its siblings may.

    Examples:
      gateway cohort create lab --quota default/gpu=64
      gateway cohort create vision --parent lab --weight 2
    """
    spec = {"name": name, **_spec(parent, weight, quota, change)}
    client().cohorts.create(checked("CohortSpec", spec))
    exits.say(f"cohort {name} created")


def change_cohort(
    name: Name,
    parent: Annotated[str | None, typer.Option(help="Cohort above.", metavar="COHORT")] = None,
    weight: Weight = None,
    quota: Quotas = None,
    change: Changes = None,
) -> None:
    """Change what is named.

    Rows of quota and changes replace all such rows.

    Example:
      gateway cohort set vision --weight 3
    """
    update(client().cohorts, "CohortSpec", name, _spec(parent, weight, quota, change))
    exits.say(f"cohort {name} changed")


def delete_cohort(name: Name) -> None:
    """Delete a cohort without children.

    Example:
      gateway cohort delete vision
    """
    client().cohorts.delete(name)
    exits.say(f"cohort {name} deleted")


def _spec(
    parent: str | None, weight: int | None, quota: list[str] | None, change: list[str] | None
) -> dict[str, Any]:
    changes = read_changes(change) if change else None
    return given(parent=parent, weight=weight, quotas=read_quotas(quota), changes=changes)
