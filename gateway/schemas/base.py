"""The strict base of every model at the wire, and the field types they share."""

from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

from pydantic import AwareDatetime, BaseModel, ConfigDict, StringConstraints

DnsLabel = Annotated[
    str, StringConstraints(pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", max_length=63)
]
"""A Kubernetes DNS label: lower case, digits, dashes; at most 63."""
JsonObject = dict[str, Any]
Timestamp = AwareDatetime
"""An instant with a time zone; answers are always UTC."""


class WireModel(BaseModel):
    """Frozen, refuses unknown fields, never guesses types."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, allow_inf_nan=False, defer_build=True
    )


class View(BaseModel):
    """What an answer holds; a newer server may add fields, so unknown ones are ignored."""

    model_config = ConfigDict(extra="ignore", frozen=True, defer_build=True)


class Page(View):
    """One page of a list; `next_cursor` is empty on the last one."""

    next_cursor: str = ""


def instant(micros: int) -> datetime:
    """Give the UTC instant of microseconds since the epoch."""
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)
