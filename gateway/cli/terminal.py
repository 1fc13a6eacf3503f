"""Safe text for terminals, and short words for times and amounts."""

from datetime import UTC, datetime, timedelta

MINUTE, HOUR, DAY = 60, 3600, 86_400
GIB = 2**30


def clean(text: str) -> str:
    """Take control characters out of text that others wrote, so that it cannot move the cursor."""
    return "".join(
        character if character == "\n" or character.isprintable() else "\N{REPLACEMENT CHARACTER}"
        for character in text
    )


def age(moment: datetime | None, now: datetime | None = None) -> str:
    """Give how long ago something was: 45s, 12m, 3h, 2d."""
    if moment is None:
        return "-"
    return span((now or datetime.now(UTC)) - moment)


def span(length: timedelta) -> str:
    """Give a length of time in one unit, or two for minutes and hours."""
    seconds = max(0, int(length.total_seconds()))
    if seconds < 2 * MINUTE:
        return f"{seconds}s"
    if seconds < 2 * HOUR:
        return f"{seconds // MINUTE}m"
    if seconds < 2 * DAY:
        return f"{seconds // HOUR}h"
    return f"{seconds // DAY}d"


def cores(millis: int) -> str:
    """Give millicores as cores."""
    return f"{millis / 1000:g}"


def gibibytes(count: int) -> str:
    """Give bytes as whole gibibytes."""
    return f"{count // GIB}Gi"
