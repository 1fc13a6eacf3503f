"""Exit codes, and how an error is told on a terminal: what, where, allowed, what to do next."""

import sys
from typing import Final

from rich.console import Console
from rich.text import Text

from gateway.cli.session import SESSION
from gateway.cli.terminal import clean
from gateway.errors import (
    Denied,
    GatewayError,
    GatewayUnreachable,
    JobFailed,
    NotFound,
    TimedOut,
    Unauthenticated,
)

FINE: Final = 0
JOB_FAILED: Final = 1
USAGE: Final = 2
REFUSED: Final = 3
NOT_FOUND: Final = 4
DENIED: Final = 5
UNREACHABLE: Final = 6
TIMED_OUT: Final = 124
INTERRUPTED: Final = 130

# The first that fits counts, so a kind stands before the one that it refines.
_CODES: Final[tuple[tuple[type[GatewayError], int], ...]] = (
    (JobFailed, JOB_FAILED),
    (NotFound, NOT_FOUND),
    (Denied, DENIED),
    (Unauthenticated, DENIED),
    (GatewayUnreachable, UNREACHABLE),
    (TimedOut, TIMED_OUT),
)


def exit_code(error: GatewayError) -> int:
    """Give the exit code of an error."""
    return next((code for kind, code in _CODES if isinstance(error, kind)), REFUSED)


def tell(error: GatewayError) -> None:
    """Print an error on standard error."""
    console = Console(
        stderr=True,
        highlight=False,
        soft_wrap=True,
        no_color=True if SESSION.no_color else None,
    )
    # The place has a line of its own; before the words it only makes them harder to read.
    prefix = f"{error.pointer}: " if error.pointer.startswith("/") else ""
    detail = error.detail.removeprefix(prefix)
    for label, style, words in (
        ("error: ", "bold red", detail),
        ("  at:      ", "", error.pointer),
        ("  value:   ", "", _value_words(error.value)),
        ("  allowed: ", "", ", ".join(error.allowed)),
        ("  next:    ", "bold", error.hint),
    ):
        if words:
            console.print(Text(label, style=style) + Text(clean(words)))


def _value_words(value: object) -> str:
    # A whole mapping says less than its place does.
    return str(value) if isinstance(value, str | int | float) else ""


def say(text: str) -> None:
    """Print a remark on standard error, so that standard output stays for scripts."""
    print(clean(text), file=sys.stderr)  # noqa: T201 - a terminal program talks
