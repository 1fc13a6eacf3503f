"""Commands on all definitions at once: apply, export."""

from pathlib import Path
from typing import Annotated, Any

import typer

from gateway.cli import exits
from gateway.cli.defining import checked
from gateway.cli.options import DryRun, Output
from gateway.cli.output import Format, show_data
from gateway.cli.session import client
from gateway.errors import GatewayError, MalformedBody, NotFound


def apply(
    file: Annotated[
        Path, typer.Option("--file", "-f", help="File or folder; - reads input.", metavar="FILE")
    ],
    dry_run: DryRun = False,
) -> None:
    """Make definitions be as a file says; all or nothing.

    What the file does not name stays as it is.

    Examples:
      gateway apply -f config.yaml --dry-run
      gateway apply -f config/
      gateway export | sed s/gpu=16/gpu=32/ | gateway apply -f -
    """
    wanted = checked("DefinitionSet", _read(file))
    changes = client().definitions.apply(wanted, dry_run=dry_run)
    for change in changes:
        exits.say(("would " if dry_run else "") + change)
    if not changes:
        exits.say("nothing to change")


def _read(file: Path) -> dict[str, Any]:
    merged: dict[str, Any] = {}
    for text in _texts(file):
        for document in _documents(file, text):
            _merge(merged, document)
    return merged


def _texts(file: Path) -> list[str]:
    if str(file) == "-":
        return [typer.get_text_stream("stdin").read()]
    return list(map(_text, _files(file)))


def _text(path: Path) -> str:
    try:
        # The mark that some editors put first is no part of the document.
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise MalformedBody(
            f"{path} cannot be read: {error}", hint="check its permissions; save it as UTF-8"
        ) from error


def _documents(file: Path, text: str) -> list[Any]:
    from gateway.manifests.yaml_text import read_yaml  # noqa: PLC0415 - only these read files

    # The reader of manifests and not PyYAML's loader: that takes the last of two `queues:` without
    # a word, makes dates of texts, and builds billions of values out of a few nested aliases.
    try:
        return list(filter(None, read_yaml(text)))
    except GatewayError as error:
        raise MalformedBody(
            f"{file} is no YAML: {error}", hint="gateway export shows the form"
        ) from error


def _files(file: Path) -> list[Path]:
    if not file.exists():
        raise NotFound(f"{file} does not exist", hint="give a file, a folder or -")
    # Sorted, so that a folder is read alike on every machine. JSON is YAML, but goes by its name.
    return sorted(file.glob("*.y*ml")) if file.is_dir() else [file]


def _merge(merged: dict[str, Any], document: Any) -> None:
    if not isinstance(document, dict):
        raise MalformedBody("a configuration is a mapping", hint="gateway export shows the form")
    for key, value in document.items():
        # Lists of several files are one list; a name that stands in two is refused by the server.
        if isinstance(value, list):
            merged.setdefault(key, []).extend(value)
        else:
            merged[key] = value


def export(output: Output = Format.YAML) -> None:
    """Print all definitions in the form that apply takes.

    Example:
      gateway export > config.yaml
    """
    found = client().definitions.export().model_dump(mode="json", exclude_none=True)
    show_data(found, Format.JSON if output is Format.JSON else Format.YAML)
