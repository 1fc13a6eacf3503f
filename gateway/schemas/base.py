"""The strict base of every model at the wire, and the field types they share."""

from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

from pydantic import AwareDatetime, BaseModel, ConfigDict, StringConstraints

DnsLabel = Annotated[
    # pydantic's engine is Rust's regex, where `$` is the very end and a line break is no match.
    str, StringConstraints(pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", max_length=63)
]
"""A Kubernetes DNS label: lower case, digits, dashes; at most 63."""
JsonObject = dict[str, Any]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
Timestamp = AwareDatetime
"""An instant with a time zone; answers are always UTC."""


# Strict, for "3" is no count and 1 is no boolean: a guess here would be stored and never seen.
class WireModel(BaseModel):
    """Frozen, refuses unknown fields, never guesses types."""

    # Built at first use: two dozen models cost a tenth of a second of every start of the SDK.
    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, allow_inf_nan=False, defer_build=True
    )


class View(BaseModel):
    """What an answer holds; a newer server may add fields, so unknown ones are ignored."""

    # Not strict: times and enums arrive as JSON texts.
    model_config = ConfigDict(extra="ignore", frozen=True, defer_build=True)


class Page(View):
    """One page of a list; `next_cursor` is empty on the last one."""

    next_cursor: str = ""


def micros_of(at: datetime) -> int:
    """Give microseconds since the epoch of an aware time; negative before 1970."""
    # Whole numbers all the way: a float of seconds rounds away the last digits.
    return (at - _EPOCH) // timedelta(microseconds=1)


def instant(micros: int) -> datetime:
    """Give the UTC instant of microseconds since the epoch."""
    # Not `fromtimestamp`: a float of seconds has no room for microseconds far from the epoch.
    return _EPOCH + timedelta(microseconds=micros)
