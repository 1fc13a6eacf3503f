"""Commands on all definitions at once: apply, export, share."""

from pathlib import Path
from typing import Annotated, Any

import typer

from gateway.cli import exits
from gateway.cli.defining import checked
from gateway.cli.jobs import DryRun, Output
from gateway.cli.output import Format, console, show_data, show_list
from gateway.cli.queues import QUEUE_COLUMNS
from gateway.cli.session import client
from gateway.errors import MalformedBody, NotFound

MOST_BAR = 30


def apply(
    file: Annotated[Path, typer.Option("--file", "-f", help="File or folder; - reads input.")],
    dry_run: DryRun = False,
) -> None:
    """Create and change queues, cohorts and flavors to be as a file says; all or nothing.

    Example: gateway export > config.yaml; edit it; gateway apply -f config.yaml --dry-run
    """
    for change in client().definitions.apply(
        checked("DefinitionSet", _read(file)), dry_run=dry_run
    ):
        exits.say(("would " if dry_run else "") + change)


def _read(file: Path) -> dict[str, Any]:
    texts = (
        [typer.get_text_stream("stdin").read()]
        if str(file) == "-"
        else [path.read_text() for path in _files(file)]
    )
    import yaml  # noqa: PLC0415 - only these commands read files

    merged: dict[str, Any] = {}
    for text in texts:
        try:
            documents = [document for document in yaml.safe_load_all(text) if document]
        except yaml.YAMLError as error:
            raise MalformedBody(
                f"{file} is no YAML: {error}", hint="gateway export shows the form"
            ) from error
        for document in documents:
            _merge(merged, document)
    return merged


def _files(file: Path) -> list[Path]:
    if not file.exists():
        raise NotFound(f"{file} does not exist", hint="give a file, a folder or -")
    return sorted(file.glob("*.y*ml")) if file.is_dir() else [file]


def _merge(merged: dict[str, Any], document: Any) -> None:
    if not isinstance(document, dict):
        raise MalformedBody("a configuration is a mapping", hint="gateway export shows the form")
    for key, value in document.items():
        if isinstance(value, list):
            merged.setdefault(key, []).extend(value)
        else:
            merged[key] = value


def export(output: Output = Format.YAML) -> None:
    """Print queues, cohorts and flavors in the form that `apply` takes."""
    found = client().definitions.export().model_dump(mode="json", exclude_none=True)
    show_data(found, Format.JSON if output is Format.JSON else Format.YAML)


def share(output: Output = Format.TABLE) -> None:
    """Show who uses how much of what they own, queue by queue."""
    queues = client().queues.list()
    if output is not Format.TABLE:
        show_list(queues, QUEUE_COLUMNS, output, name="name")
        return
    rows = [(queue, row) for queue in queues for row in queue.usage]
    for queue, row in rows:
        filled = min(MOST_BAR, MOST_BAR * row.used // max(1, row.nominal))
        bar = "#" * filled + "." * (MOST_BAR - filled)
        console().print(
            f"{queue.name:<16} {row.flavor}/{row.resource:<10} [{bar}] {row.used}/{row.nominal}",
            markup=False,
        )
    if not rows:
        exits.say("no queue has quota; everything is shared without limits")
