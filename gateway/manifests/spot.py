"""A value inside a submitted document together with the JSON pointer that leads to it.

Every check reads through it, so a value of the wrong type is always refused with its place and
never meets code that would fail on it. It knows types, but no field of any format.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

from gateway.errors import GatewayError, InvalidInput
from gateway.manifests.suggesting import did_you_mean

MAX_INT64: Final = 2**63 - 1
_SHOWN: Final = 200
_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})
_TYPES: Final = {
    bool: "a boolean",
    int: "a whole number",
    float: "a number",
    str: "a text",
    list: "a list",
    dict: "a mapping",
}


class Spot:
    """A value and where it is; a missing value and an explicit null both read as None.

    The pointer is put together only when it is asked for: most spots are never complained about.
    """

    __slots__ = ("key", "parent", "start", "value")

    def __init__(
        self, value: Any, start: str = "", parent: "Spot | None" = None, key: str | int = ""
    ) -> None:
        """Stand at a value whose pointer is `start`, or at the entry `key` of a parent."""
        self.value = value
        self.start = start
        self.parent = parent
        self.key = key

    @property
    def pointer(self) -> str:
        """JSON pointer of the value."""
        keys = []
        spot = self
        while spot.parent is not None:
            keys.append(str(spot.key).replace("~", "~0").replace("/", "~1"))
            spot = spot.parent
        return "/".join([spot.start, *reversed(keys)])

    @property
    def is_missing(self) -> bool:
        """True when nothing is given here."""
        return self.value is None

    def child(self, key: str | int, value: Any) -> "Spot":
        """Stand at an entry of this value."""
        return Spot(value, "", self, key)

    def at(self, *keys: str) -> "Spot":
        """Give the value under these keys; refuses a step into something that is no mapping."""
        spot = self
        for key in keys:
            # Written out: this is the step that reading takes most often.
            value = spot.value
            found = value.get(key) if type(value) is dict else spot.fields().get(key)
            spot = Spot(found, "", spot, key)
        return spot

    def fields(self) -> Mapping[str, Any]:
        """Give a mapping; empty when missing."""
        if self.value is None:
            return _NOTHING
        if not isinstance(self.value, dict):
            raise self.wrong_type("a mapping")
        return self.value

    def entries(self) -> Iterator[tuple[str, "Spot"]]:
        """Give a mapping's keys with their values."""
        for key, value in self.fields().items():
            yield key, self.child(key, value)

    def items(self) -> list["Spot"]:
        """Give a list's entries; empty when missing."""
        if self.value is None:
            return []
        if not isinstance(self.value, list):
            raise self.wrong_type("a list")
        return [self.child(index, value) for index, value in enumerate(self.value)]

    def text(self) -> str:
        """Give a text; empty when missing."""
        if self.value is None:
            return ""
        if not isinstance(self.value, str):
            raise self.wrong_type("a text")
        return self.value

    def texts(self) -> list[str]:
        """Give a list of texts; empty when missing."""
        for item in self.items():
            if not isinstance(item.value, str):
                raise item.wrong_type("a text")
        return list(self.value or ())

    def text_map(self) -> dict[str, str]:
        """Give a mapping of texts, as labels and annotations are; empty when missing."""
        for _, item in self.entries():
            if not isinstance(item.value, str):
                raise item.wrong_type("a text")
        return dict(self.fields())

    def text_value(self) -> str:
        """Give a text that must be there."""
        if self.value is None:
            raise self.wrong_type("a text")
        return self.text()

    def flag(self) -> bool:
        """Give a boolean; False when missing."""
        if self.value is None:
            return False
        if not isinstance(self.value, bool):
            raise self.wrong_type("a boolean")
        return self.value

    def whole(self, least: int, most: int = MAX_INT64) -> int:
        """Give a whole number within these bounds."""
        if not isinstance(self.value, int) or isinstance(self.value, bool):
            raise self.wrong_type("a whole number")
        if not least <= self.value <= most:
            raise self.refuse(
                f"{self.value} is not between {least} and {most}",
                allowed=(f"{least} to {most}",),
                hint="choose a number in this range",
            )
        return self.value

    def choice(self, allowed: Iterable[str], default: str = "") -> str:
        """Give one of the allowed words; the default when missing."""
        words = tuple(str(each) for each in allowed)
        word = self.text() or default
        if word not in words and not (self.is_missing and word == default):
            raise self.refuse(
                f"{word!r} is not one of {', '.join(words)}",
                allowed=words,
                hint=did_you_mean(word, words, "choose one of the allowed values"),
            )
        return word

    def demand(
        self,
        is_fine: bool,  # noqa: FBT001 - the condition reads first
        detail: str,
        hint: str,
        *,
        allowed: tuple[str, ...] = (),
        kind: type[GatewayError] = InvalidInput,
    ) -> None:
        """Refuse this value unless the condition holds."""
        if not is_fine:
            raise self.refuse(detail, hint=hint, allowed=allowed, kind=kind)

    def refuse(
        self,
        detail: str,
        *,
        hint: str,
        allowed: tuple[str, ...] = (),
        kind: type[GatewayError] = InvalidInput,
    ) -> GatewayError:
        """Give the error that refuses this value; the caller raises it."""
        where = self.pointer or "the document"
        return kind(
            f"{where}: {detail}",
            pointer=self.pointer,
            value=_shown(self.value),
            allowed=allowed,
            hint=hint,
        )

    def wrong_type(self, expected: str) -> GatewayError:
        """Give the error for a value of another type."""
        found = "nothing" if self.value is None else _TYPES.get(type(self.value), "something else")
        return self.refuse(
            f"{expected} belongs here, not {found}",
            allowed=(expected,),
            hint=_type_hint(self.value, expected),
        )


def _type_hint(value: object, expected: str) -> str:
    if value is None:
        return "give a value, or remove the key"
    if isinstance(value, str) and "$" in value:
        return "a variable was left unexpanded: run envsubst or fill it in"
    if expected == "a text" and isinstance(value, bool):
        return "YAML reads true, false, yes, no, on and off as booleans: put the value into quotes"
    if expected == "a text" and isinstance(value, int | float):
        return f'put it into quotes: "{value}"'
    if expected == "a boolean":
        return "write true or false"
    if isinstance(value, str) and value.strip("+-").isdecimal():
        return "write it without quotes"
    return f"write {expected}"


def _shown(value: object) -> object:
    """Give a value short enough for an answer; a large one only by its type."""
    if isinstance(value, str):
        short = value if len(value) <= _SHOWN else value[:_SHOWN] + "..."
        return short.encode("utf-8", "replace").decode()
    if isinstance(value, dict | list):
        return value if len(str(value)) <= _SHOWN else _TYPES[type(value)]
    if value is None or isinstance(value, bool | int):
        return value
    # Not every float and no other object has a form in JSON.
    is_finite = isinstance(value, float) and math.isfinite(value)
    return value if is_finite else str(value)[:_SHOWN]
