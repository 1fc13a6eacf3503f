"""Options that several commands take, and which of them were given."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from gateway.cli import exits
from gateway.cli.output import Format

Output = Annotated[Format, typer.Option("--output", "-o", help="Form of the answer.")]
Namespace = Annotated[
    str | None,
    typer.Option("--namespace", "-n", help="Namespace; for names and lists.", metavar="NAMESPACE"),
]
DeviceId = Annotated[int, typer.Argument(metavar="ID", help="As `gateway device ls` shows it.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Check only; change nothing.")]


def given(**options: Any) -> dict[str, Any]:
    """Give the options that were given."""
    return {name: value for name, value in options.items() if value is not None}


@contextmanager
def detaching(remark: str) -> Iterator[None]:
    """Let Ctrl-C leave a job alone: say so, and end this command."""
    try:
        yield
    except KeyboardInterrupt:
        exits.say(remark)
        raise typer.Exit(exits.INTERRUPTED) from None
