"""Help: every command has a short line that is not cut, and examples that can be typed."""

import shlex
from collections.abc import Iterator
from typing import Any

import pytest

from gateway.cli.app import command_line

CUT = "..."
WIDTH = 80


def commands(command: Any = None, path: str = "gateway") -> Iterator[tuple[str, Any]]:
    """Give every command with the words that call it."""
    command = command_line() if command is None else command
    yield path, command
    for name, child in getattr(command, "commands", {}).items():
        yield from commands(child, f"{path} {name}")


ALL = dict(commands())
LEAVES = [path for path, command in ALL.items() if not hasattr(command, "commands")]


def help_of(path: str) -> str:
    context = ALL[path].make_context(path, ["--help"], resilient_parsing=True, terminal_width=WIDTH)
    return str(ALL[path].get_help(context))


def examples(path: str) -> list[str]:
    lines = help_of(path).splitlines()
    starts = [number for number, line in enumerate(lines) if line.strip().startswith("Example")]
    assert len(starts) == 1, f"{path} has no examples, or two lists of them"
    following = lines[starts[0] + 1 :]
    return [line.strip() for line in following[: following.index("")]]


@pytest.mark.parametrize("path", LEAVES)
def test_every_command_has_examples_of_itself(path: str) -> None:
    found = examples(path)
    assert found
    assert all(path in line for line in found)


@pytest.mark.parametrize("path", LEAVES)
def test_every_option_of_an_example_exists(path: str) -> None:
    known = {name for option in ALL[path].params for name in option.opts} | {"--help"}
    for line in examples(path):
        _, _, after = line.partition(path)
        used = shlex.split(after.partition("|")[0].partition("&&")[0])
        assert {word for word in used if word.startswith("-") and word != "-"} <= known


@pytest.mark.parametrize("path", [path for path in ALL if path not in LEAVES])
def test_no_line_of_a_list_of_commands_is_cut(path: str) -> None:
    assert CUT not in help_of(path).partition("COMMAND [ARGS]...")[2]


@pytest.mark.parametrize("path", ALL)
def test_help_fits_into_eighty_columns(path: str) -> None:
    assert max(map(len, help_of(path).splitlines())) <= WIDTH


@pytest.mark.parametrize("path", ALL)
def test_help_speaks_of_what_users_know_and_not_of_types(path: str) -> None:
    for python in ("list[", "<str>", "<int", "<path>", "<float>"):
        assert python not in help_of(path).partition("Options:")[2]


def test_every_command_below_a_group_is_named_in_its_line() -> None:
    for path, command in ALL.items():
        if path != "gateway" and path not in LEAVES:
            named = command.help.partition(": ")[2].rstrip(".").split(", ")
            assert set(named) == set(command.commands)


def test_commands_of_one_kind_stand_below_one_heading() -> None:
    text = help_of("gateway")
    headings = ("Jobs:", "Sharing:", "Fleet:", "Servers:", "Other:")
    places = [text.index(heading) for heading in headings]
    assert places == sorted(places)
    assert places[0] < text.index("  submit") < places[1] < text.index("  queue ") < places[2]
    assert all(f"  {path.split()[1]} " in text for path in ALL if path != "gateway")
