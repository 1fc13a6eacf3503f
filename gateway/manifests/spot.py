"""A value inside a submitted document together with the JSON pointer that leads to it.

Every check reads through it, so a value of the wrong type is always refused with its place and
never meets code that would fail on it. It knows types, but no field of any format.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType, NoneType
from typing import Any, Final, TypeGuard, TypeVar

from gateway.errors import GatewayError, InvalidInput
from gateway.schemas.suggesting import UNEXPANDED, did_you_mean

MAX_INT64: Final = 2**63 - 1
# A refusal travels in a log line and an HTTP answer; a 200 kB script must not come back in it.
_SHOWN: Final = 200
# Not 08: YAML takes it for a text without quotes, too.
_QUOTED_NUMBER: Final = re.compile(r"[-+]?(0|[1-9][0-9]{0,39})")
# One for all missing mappings, so it must not be writable: a write into it would be seen by every
# other reader.
_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})
_TYPES: Final = {
    bool: "a boolean",
    int: "a whole number",
    float: "a number",
    str: "a text",
    list: "a list",
    dict: "a mapping",
    NoneType: "nothing",
}
_Kind = TypeVar("_Kind")


def is_whole(value: object) -> TypeGuard[int]:
    """True for a whole number; Python's booleans are none."""
    # bool is a subclass of int: without this `replicas: true` would be one replica.
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: object) -> TypeGuard[int | float]:
    """True for any number; Python's booleans are none."""
    return is_whole(value) or isinstance(value, float)


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
            # RFC 6901, section 3: the tilde first, or the tilde of "~1" would be escaped once more.
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
            if type(value) is dict:
                spot = Spot(value.get(key), "", spot, key)
            else:
                spot = Spot(None if value is None else spot.fields().get(key), "", spot, key)
        return spot

    def fields(self) -> Mapping[str, Any]:
        """Give a mapping; empty when missing."""
        # Asked first: nearly always it is one, and this is asked very often.
        return self.value if type(self.value) is dict else self._typed(dict, _NOTHING)

    def mapping_at(self, key: str) -> "Spot":
        """Give the mapping under this key of a mapping; an empty one is put there if missing."""
        if self.at(key).is_missing:
            # Safe to write: `plain` made a copy before any check, so no caller's is changed.
            self.value[key] = {}
        self.at(key).fields()
        return self.at(key)

    def drop(self, key: str) -> None:
        """Remove this key of a mapping; nothing is removed of a missing one."""
        if key in self.fields():
            del self.value[key]

    def given(self, keys: Iterable[str]) -> Iterator[tuple[str, "Spot"]]:
        """Give those of these keys that have a value, with it."""
        for key in keys:
            if not self.at(key).is_missing:
                yield key, self.at(key)

    def entries(self) -> Iterator[tuple[str, "Spot"]]:
        """Give a mapping's keys with their values."""
        for key, value in self.fields().items():
            yield key, self.child(key, value)

    def items(self) -> list["Spot"]:
        """Give a list's entries; empty when missing."""
        if self.value is None:
            return []
        return [self.child(index, value) for index, value in enumerate(self._typed(list, []))]

    def text(self) -> str:
        """Give a text; empty when missing."""
        return self._typed(str, "")

    def texts(self) -> list[str]:
        """Give a list of texts; empty when missing."""
        return [item.text_value() for item in self.items()]

    def text_map(self) -> dict[str, str]:
        """Give a mapping of texts, as labels and annotations are; empty when missing."""
        return {key: item.text_value() for key, item in self.entries()}

    def text_value(self) -> str:
        """Give a text that must be there."""
        if isinstance(self.value, str):
            return self.value
        raise self.wrong_type("a text")

    def flag(self) -> bool:
        """Give a boolean; False when missing."""
        return self._typed(bool, False)

    def whole(self, least: int, most: int = MAX_INT64) -> int:
        """Give a whole number within these bounds."""
        if not is_whole(self.value):
            raise self.wrong_type("a whole number")
        if not least <= self.value <= most:
            raise self.refuse(
                f"{self.value} is not between {least} and {most}",
                allowed=(f"{least} to {most}",),
                hint="choose a number in this range",
            )
        return self.value

    def whole_or(self, default: int, least: int, most: int = MAX_INT64) -> int:
        """Give a whole number within these bounds; the default when missing."""
        return default if self.is_missing else self.whole(least, most)

    def choice(self, allowed: Iterable[str], default: str = "") -> str:
        """Give one of the allowed words; the default when missing."""
        if self.is_missing:
            return default
        words = tuple(map(str, allowed))
        word = self.text() or default
        if word in words:
            return word
        raise self.refuse(
            f"{word!r} is not one of {', '.join(words)}",
            allowed=words,
            hint=did_you_mean(word, words, "choose one of the allowed values"),
        )

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
        found = _TYPES.get(type(self.value), "something else")
        return self.refuse(
            f"{expected} belongs here, not {found}",
            allowed=(expected,),
            hint=_type_hint(self.value, expected),
        )

    def _typed(self, kind: type[_Kind], nothing: _Kind) -> _Kind:
        """Give a value of this type, `nothing` when it is missing."""
        if self.value is None:
            return nothing
        if isinstance(self.value, kind):
            return self.value
        raise self.wrong_type(_TYPES[kind])


def _type_hint(value: object, expected: str) -> str:
    if value is None:
        return "give a value, or remove the key"
    if isinstance(value, str):
        return _hint_on_text(value, expected)
    if expected == "a text":
        return _hint_on_quotes(value)
    return _hint_on_form(expected)


def _hint_on_text(text: str, expected: str) -> str:
    if "$" in text:
        return UNEXPANDED
    is_quoted_number = expected != "a boolean" and _QUOTED_NUMBER.fullmatch(text) is not None
    return "write it without quotes" if is_quoted_number else _hint_on_form(expected)


def _hint_on_quotes(value: object) -> str:
    if isinstance(value, bool):
        # The country code of Norway is the classic: `NO` without quotes is false.
        return "YAML reads true, false, yes, no, on and off as booleans: put the value into quotes"
    return f'put it into quotes: "{value}"' if is_number(value) else _hint_on_form("a text")


def _hint_on_form(expected: str) -> str:
    return "write true or false" if expected == "a boolean" else f"write {expected}"


def _shown(value: object) -> object:
    """Give a value short enough for an answer; a large one only by its type."""
    if isinstance(value, str):
        # Half of a surrogate pair, from a JSON escape, would make the answer itself unwritable.
        return _shortened(value).encode("utf-8", "replace").decode()
    if isinstance(value, dict | list):
        return value if len(str(value)) <= _SHOWN else _TYPES[type(value)]
    return value if _has_json_form(value) else str(value)[:_SHOWN]


def _shortened(text: str) -> str:
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "..."


def _has_json_form(value: object) -> bool:
    """Not every float and no unknown object has a form in JSON."""
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, int | NoneType)
