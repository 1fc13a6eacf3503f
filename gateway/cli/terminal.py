"""Safe text for terminals, and short words for times and amounts."""

from datetime import UTC, datetime, timedelta
from unicodedata import category

UNITS = ((86_400, "d"), (3600, "h"), (60, "m"))
"""Seconds of each unit, which is shown from two of them on."""
SECOND = (1, "s")
GIB = 2**30


def clean(text: str) -> str:
    """Take control characters out of text that others wrote, so that it cannot move the cursor."""
    return "".join(map(_harmless, text))


def _harmless(character: str) -> str:
    # Escape sequences begin with a control character; bidirectional marks (Cf) reorder what is
    # read. `isprintable` calls every space but the ASCII one unprintable, though it moves nothing.
    is_harmless = character.isprintable() or character in "\n\t" or category(character) == "Zs"
    return character if is_harmless else "\N{REPLACEMENT CHARACTER}"


def age(moment: datetime | None, now: datetime | None = None) -> str:
    """Give how long ago something was: 45s, 12m, 3h, 2d."""
    if moment is None:
        return "-"
    return span((now or datetime.now(UTC)) - moment)


def span(length: timedelta) -> str:
    """Give a length of time in one unit, or two for minutes and hours."""
    # The gateway's clock may be ahead of this machine's.
    seconds = max(0, int(length.total_seconds()))
    # From two units on: "1h" could be anything from 60 to 119 minutes.
    unit, letter = next((each for each in UNITS if seconds >= 2 * each[0]), SECOND)
    return f"{seconds // unit}{letter}"


def moment_words(moment: datetime) -> str:
    """Give a moment to the second, to be read in a column."""
    return moment.strftime("%Y-%m-%d %H:%M:%S")


def cores(millis: int) -> str:
    """Give millicores as cores."""
    return f"{millis / 1000:g}"


def gibibytes(count: int) -> str:
    """Give bytes as whole gibibytes."""
    return f"{count // GIB}Gi"
