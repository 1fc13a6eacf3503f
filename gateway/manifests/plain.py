"""Turns any nested value into plain JSON data of its own: copied, bounded, numbers made exact.

What comes out holds only dict with text keys, list, str, int, float, bool and None, shares nothing
with what went in, and can be stored by every database and sent to every API server.
"""

import math
from collections.abc import Mapping
from typing import Any, Final

from gateway.errors import BodyTooLarge, InvalidInput
from gateway.manifests.spot import MAX_INT64, Spot

MAX_DEPTH: Final = 64
MAX_NODES: Final = 50_000
"""Values in one document. A 256 KiB body holds fewer unless aliases multiply them."""


class _Copier:
    """Copies one document and counts what it copied."""

    def __init__(self) -> None:
        self._left = MAX_NODES

    def copy(self, spot: Spot, depth: int) -> Any:
        self._left -= 1
        if self._left < 0:
            raise BodyTooLarge(
                f"the document holds more than {MAX_NODES} values",
                allowed=(f"at most {MAX_NODES} values",),
                hint="submit fewer jobs at once, or use fewer aliases",
            )
        if depth > MAX_DEPTH:
            raise spot.refuse(f"nested deeper than {MAX_DEPTH} levels", hint="flatten the document")
        value = spot.value
        if isinstance(value, Mapping):
            return {
                _key(key, spot): self.copy(Spot(item, spot.below(str(key))), depth + 1)
                for key, item in value.items()
            }
        if isinstance(value, list | tuple):
            return [
                self.copy(Spot(item, spot.below(index)), depth + 1)
                for index, item in enumerate(value)
            ]
        return _scalar(spot)


def plain(value: object) -> Any:
    """Give a copy as plain JSON data; integral floats become whole numbers.

    Raises InvalidInput with a pointer for a value that JSON has no word for, BodyTooLarge for too
    many values.
    """
    return _Copier().copy(Spot(value), 0)


def without_nulls(value: Any) -> Any:
    """Give the same data without keys whose value is null, which Kubernetes reads as absent."""
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [without_nulls(item) for item in value]
    return value


def _key(key: object, spot: Spot) -> str:
    if isinstance(key, str):
        return _text(Spot(key, spot.below(key)))
    raise Spot(key, spot.below(str(key))).refuse(
        f"the key {key!r} is not a text", hint=f'put the key into quotes: "{key}"'
    )


def _scalar(spot: Spot) -> Any:
    value = spot.value
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _text(spot)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise spot.refuse(f"{value} is not a number", hint="write a finite number")
        return value if not value.is_integer() else _int(Spot(int(value), spot.pointer))
    if isinstance(value, int):
        return _int(spot)
    raise spot.refuse(
        f"a {type(value).__name__} has no form in JSON",
        hint="use text, numbers, booleans, lists and mappings only",
    )


def _int(spot: Spot) -> int:
    value = int(spot.value)
    if abs(value) > MAX_INT64:
        raise Spot("a huge number", spot.pointer).refuse(
            "the number does not fit into 64 bits", hint="write a smaller number"
        )
    return value


def _text(spot: Spot) -> str:
    value = str.__str__(spot.value)  # an enum's own str() would give its name
    if "\0" in value or any("\ud800" <= letter <= "\udfff" for letter in value):
        raise InvalidInput(
            f"{spot.pointer or 'the document'}: the text holds a NUL or half of a character",
            pointer=spot.pointer.encode("utf-8", "replace").decode().replace("\0", "?"),
            hint="remove it",
        )
    return value
