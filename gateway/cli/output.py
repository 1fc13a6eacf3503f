"""Prints views as a table, JSON, YAML, wide table or plain names."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from rich.console import Console
from rich.table import Table
from rich.text import Text

from gateway.cli import exits
from gateway.cli.session import SESSION
from gateway.cli.terminal import clean

if TYPE_CHECKING:
    from pydantic import BaseModel

Item = TypeVar("Item")


class Format(StrEnum):
    """How to print."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    NAME = "name"


@dataclass(frozen=True, slots=True)
class Column(Generic[Item]):
    """One column of a table; `is_wide` ones show with -o wide only."""

    title: str
    value: Callable[[Item], object]
    is_wide: bool = False
    is_number: bool = False


STYLES = {
    "running": "green",
    "succeeded": "green",
    "failed": "red",
    "unhealthy": "red",
    "cancelled": "yellow",
    "held": "yellow",
    "cordoned": "yellow",
    "paused": "yellow",
}


DATA = frozenset({Format.JSON, Format.YAML})
EMPTY = (None, "")
BREAKS = {ord("\n"): " ", ord("\t"): " "}
"""What would break a row of one line, and the blank in its place."""


def console() -> Console:
    """Give the console for standard output."""
    # Made anew for each output: it keeps the stream and width that it finds. Highlighting would
    # colour numbers inside names.
    return Console(highlight=False, soft_wrap=False, no_color=True if SESSION.no_color else None)


def show_list(
    items: Sequence[Item], columns: Sequence[Column[Item]], form: Format, name: str = "id"
) -> None:
    """Print many; `name` is the field that `-o name` prints."""
    if form in DATA:
        show_data(list(map(_plain, items)), form)
    elif form is Format.NAME:
        _show_names(items, name)
    elif items:
        _show_table(items, _shown(columns, form), form)
    else:
        # On standard error, so that a script that counts lines counts none.
        exits.say("nothing found")


def _show_names(items: Sequence[Item], name: str) -> None:
    for item in items:
        print(clean(str(getattr(item, name))))  # noqa: T201 - for scripts


def _shown(columns: Sequence[Column[Item]], form: Format) -> Sequence[Column[Item]]:
    if form is Format.WIDE:
        return columns
    return [column for column in columns if not column.is_wide]


def _show_table(items: Sequence[Item], columns: Sequence[Column[Item]], form: Format) -> None:
    screen = console()
    if screen.is_terminal and form is Format.TABLE:
        screen.print(_table(items, columns))
        return
    # A pipe has no width, and -o wide asks for everything: one line a row, nothing cut. Somebody
    # may read by columns, so none is filled up with spaces at the end of a line.
    for line in _lines(items, columns):
        screen.print(line, soft_wrap=True)


def _table(items: Sequence[Item], columns: Sequence[Column[Item]]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for place, column in enumerate(columns):
        # What is typed again and what is compared stays in one piece; other words may be folded,
        # never cut.
        table.add_column(
            column.title,
            justify="right" if column.is_number else "left",
            overflow="fold",
            no_wrap=column.is_number or place == 0,
        )
    for item in items:
        table.add_row(*(_cell(column.value(item)) for column in columns))
    return table


def _lines(items: Sequence[Item], columns: Sequence[Column[Item]]) -> Iterator[Text]:
    rows = [[Text(column.title, style="bold") for column in columns]]
    rows += [[_cell(column.value(item), BREAKS) for column in columns] for item in items]
    widths = [max(cell.cell_len for cell in cells) for cells in zip(*rows, strict=True)]
    yield from (_line(row, columns, widths) for row in rows)


def _line(row: list[Text], columns: Sequence[Column[Item]], widths: Sequence[int]) -> Text:
    for cell, column, width in zip(row, columns, widths, strict=True):
        cell.align("right" if column.is_number else "left", width)
    line = Text("  ").join(row)
    line.rstrip()
    return line


def labelled(item: Item, columns: Sequence[Column[Item]]) -> list[tuple[str, object]]:
    """Give a thing's columns as label and value."""
    return [(column.title.lower(), column.value(item)) for column in columns]


def show_one(
    item: "BaseModel", lines: Sequence[tuple[str, object]], form: Format, name: str = "name"
) -> None:
    """Print one thing as label and value, as data, or its field `name` alone."""
    if form in DATA:
        show_data(_plain(item), form)
        return
    if form is Format.NAME:
        _show_names([item], name)
        return
    # Labels may stand twice (a queue's rows of use); a dict keeps one of each, which is enough
    # here.
    width = max(map(len, dict(lines)), default=0)
    for label, value in lines:
        if value not in EMPTY:
            text = Text(f"{label:<{width}}  ", style="bold") + _cell(value)
            console().print(text, soft_wrap=True)


def show_data(data: object, form: Format) -> None:
    """Print plain data as JSON or YAML."""
    if form is Format.YAML:
        from gateway.cli.yaml_writing import write_yaml  # noqa: PLC0415 - rarely asked for

        print(write_yaml(data), end="")  # noqa: T201 - for scripts
    else:
        # No control character gets through here either: JSON escapes them all, and so does YAML.
        print(json.dumps(data, indent=2, ensure_ascii=False))  # noqa: T201 - for scripts


def _plain(item: Any) -> object:
    return item.model_dump(mode="json") if hasattr(item, "model_dump") else item


def _cell(value: object, breaks: dict[int, str] | None = None) -> Text:
    # A dash, since columns are split at spaces by awk and cut. Text and not markup, as names of
    # others may hold square brackets.
    text = "-" if value in EMPTY else clean(str(value)).translate(breaks or {})
    return Text(text, style=STYLES.get(text, ""))
