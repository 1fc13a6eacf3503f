"""How lists look on a terminal, in a pipe, wide, as names, and when there is nothing."""

import io
from dataclasses import dataclass
from typing import Any

import pytest
from rich.console import Console

from gateway.cli import output
from gateway.cli.output import Column, Format, show_list
from gateway.cli.session import SESSION


@dataclass(frozen=True)
class Thing:
    """Something with a long word, a number and a remark that only -o wide shows."""

    name: str
    size: int
    remark: str = ""


COLUMNS: list[Column[Thing]] = [
    Column("NAME", lambda thing: thing.name),
    Column("SIZE", lambda thing: thing.size, is_number=True),
    Column("REMARK", lambda thing: thing.remark, is_wide=True),
]
LONG = "a-name-that-is-longer-than-the-whole-terminal"


def screen(width: int, **options: Any) -> Console:
    """Give a terminal of some width that keeps what it shows."""
    return Console(file=io.StringIO(), width=width, force_terminal=True, **options)


def shown_on(terminal: Console, things: list[Thing], form: Format = Format.TABLE) -> str:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(output, "console", lambda: terminal)
        show_list(things, COLUMNS, form)
    assert isinstance(terminal.file, io.StringIO)
    return terminal.file.getvalue()


@pytest.mark.parametrize("form", [Format.TABLE, Format.WIDE])
def test_a_pipe_gets_every_row_whole_and_on_one_line(
    form: Format, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    show_list([Thing(LONG, 1, "two\nlines"), Thing("b", 22)], COLUMNS, form)
    header, first, second = capsys.readouterr().out.splitlines()
    assert header.split() == ["NAME", "SIZE", "REMARK"][: 3 if form is Format.WIDE else 2]
    assert first.split(maxsplit=2)[:2] == [LONG, "1"]
    assert first.endswith("two lines" if form is Format.WIDE else "1")
    assert second.split()[:2] == ["b", "22"]


def test_no_line_of_a_pipe_ends_with_blanks(capsys: pytest.CaptureFixture[str]) -> None:
    show_list([Thing("a", 1, "long remark"), Thing("b", 2, "short")], COLUMNS, Format.WIDE)
    lines = capsys.readouterr().out.splitlines()
    assert lines == [line.rstrip() for line in lines]
    assert len(lines) == 3


def test_a_narrow_terminal_folds_words_and_cuts_none(monkeypatch: pytest.MonkeyPatch) -> None:
    narrow = screen(24, no_color=True)
    monkeypatch.setattr(output, "console", lambda: narrow)
    columns: list[Column[Thing]] = [Column("SIZE", lambda thing: thing.size), *COLUMNS[:1]]
    show_list([Thing(LONG, 1)], columns, Format.TABLE)
    assert isinstance(narrow.file, io.StringIO)
    text = narrow.file.getvalue()
    assert LONG in "".join(text.split())
    assert max(map(len, text.splitlines()[1:])) <= narrow.width


def test_wide_on_a_terminal_keeps_each_row_in_one_line() -> None:
    text = shown_on(screen(24, no_color=True), [Thing(LONG, 1, "remark")], Format.WIDE)
    assert f"{LONG}     1  remark" in text


def test_nothing_is_said_apart_from_the_answer(capsys: pytest.CaptureFixture[str]) -> None:
    show_list([], COLUMNS, Format.TABLE)
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", "nothing found\n")
    show_list([], COLUMNS, Format.JSON)
    assert capsys.readouterr().out == "[]\n"


def test_colours_can_be_turned_off_by_an_option(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert not output.console().no_color
    monkeypatch.setattr(SESSION, "no_color", True)
    assert output.console().no_color
