"""Cuts lists into pages: where the next one begins, and what a cursor says. Knows no rows."""

import re
from collections.abc import Callable, Sequence

from gateway.db.engine import Row
from gateway.errors import InvalidInput


def next_cursor(rows: Sequence[Row], limit: int, place: Callable[[Row], str]) -> str:
    """Give the place of a page's last row; empty when `rows` holds no more than the page."""
    return place(rows[limit - 1]) if len(rows) > limit else ""


def number_of(row: Row) -> str:
    """Give the place of a row in lists that are ordered by id."""
    return str(row["id"])


def match_cursor(pattern: re.Pattern[str], cursor: str) -> re.Match[str] | None:
    """Give the parts of a cursor; None for the empty one, with which lists begin.

    Raises:
        InvalidInput: it is none of ours.
    """
    found = pattern.match(cursor)
    if cursor and found is None:
        raise InvalidInput(
            "the cursor is not one of ours",
            pointer="/cursor",
            value=cursor[:64],
            hint="take next_cursor of the page before, unchanged",
        )
    return found
