"""Writes the reference pages from the code: settings, commands, reasons, errors.

`python -m gateway.cli.reference docs/reference`; a test compares the result with what is committed.
"""

import ast
import inspect
import sys
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeGuard

from gateway.cli.app import command_line
from gateway.core import vocabulary
from gateway.core.vocabulary import ENVIRONMENT_PREFIX
from gateway.errors import GatewayError

RULE = "|---|---|---|"
WORDS = (
    *("JobState", "Reason", "EndReason", "PairRule", "Guarantee", "AttemptPhase"),
    *("OrderPolicy", "Blocking", "WhenCanBorrow", "LiftKind"),
)
"""Closed lists that users meet."""
NOTICE = "<!-- Written by `make docs` from the code; do not edit. -->\n"


def pages() -> dict[str, str]:
    """Give each page's text by file name."""
    return {
        "settings.md": settings_page(),
        "command-line.md": command_page(),
        "words.md": words_page(),
        "errors.md": errors_page(),
    }


def settings_page() -> str:
    """Give the table of settings."""
    from gateway.settings import Settings  # noqa: PLC0415 - needs the server extra

    notes = notes_below(Settings)
    lines = [
        "# Settings",
        "",
        NOTICE,
        "| environment variable | default | meaning |",
        "|---|---|---|",
    ]
    for name, field in Settings.model_fields.items():
        default = "" if field.default_factory or field.is_required() else field.default
        shown = getattr(default, "value", default)
        lines.append(
            f"| `{ENVIRONMENT_PREFIX}{name.upper()}` | `{shown}` | {notes.get(name, '')} |"
        )
    return "\n".join(lines) + "\n"


def command_page() -> str:
    """Give every command's help."""
    command = command_line()
    lines = ["# Command line", "", NOTICE]
    for path, text in _helps(command, "gateway"):
        lines += [f"## {path}", "", "```", text.strip(), "```", ""]
    return "\n".join(lines)


def _helps(command: Any, path: str) -> Iterator[tuple[str, str]]:
    context = command.make_context(path, ["--help"], resilient_parsing=True)
    yield path, _without_trailing_space(command.get_help(context))
    for name in getattr(command, "commands", {}):
        yield from _helps(command.commands[name], f"{path} {name}")


def _without_trailing_space(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.splitlines())


def words_page() -> str:
    """Give the closed lists: states, reasons, guarantees, rules."""
    lines = ["# Closed lists", "", NOTICE]
    for name in WORDS:
        kind: type[StrEnum] = getattr(vocabulary, name)
        notes = notes_below(kind)
        lines += [
            f"## {name}",
            "",
            (kind.__doc__ or "").strip(),
            "",
            "| value | meaning |",
            "|---|---|",
        ]
        lines += [f"| `{member.value}` | {notes.get(member.name, '')} |" for member in kind]
        lines.append("")
    return "\n".join(lines)


def errors_page() -> str:
    """Give every error code with its HTTP status."""
    lines = ["# Errors", "", NOTICE, "| code | status | meaning |", "|---|---|---|"]
    kinds = sorted(_descendants(GatewayError), key=lambda kind: (kind.status, kind.code))
    lines += [
        f"| `{kind.code}` | {kind.status} | {(kind.__doc__ or '').splitlines()[0]} |"
        for kind in kinds
        if kind.__module__ == GatewayError.__module__
    ]
    return "\n".join(lines) + "\n"


def _descendants(kind: type[GatewayError]) -> Iterator[type[GatewayError]]:
    for child in kind.__subclasses__():
        yield child
        yield from _descendants(child)


def notes_below(kind: type) -> dict[str, str]:
    """Give the strings that stand below a class's members, by member."""
    tree = ast.parse(inspect.getsource(kind)).body[0]
    notes: dict[str, str] = {}
    previous = ""
    for node in getattr(tree, "body", []):
        if previous and _is_text(node):
            notes[previous] = " ".join(str(node.value.value).split())
        previous = _member(node) or previous
    return notes


def _is_text(node: ast.stmt) -> TypeGuard[Any]:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _member(node: ast.stmt) -> str:
    """Give the member that a statement defines; empty for any other statement."""
    target = getattr(node, "target", None)
    return getattr(getattr(node, "targets", [target])[0], "id", "")


def write(folder: Path) -> None:
    """Write every page."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (folder / name).write_text(text)


if __name__ == "__main__":
    write(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/reference"))
