"""Turns any nested value into plain JSON data of its own: copied, bounded, numbers made exact.

What comes out holds only dict with text keys, list, str, int, float, bool and None, shares nothing
with what went in, and can be stored by every database and sent to every API server.
"""

import math
import re
from collections.abc import Mapping
from types import NoneType
from typing import Any, Final

from gateway.errors import BodyTooLarge
from gateway.manifests.spot import MAX_INT64, Spot

# A PyTorchJob is about 15 levels deep. The bound lets everything after it recurse without care.
MAX_DEPTH: Final = 64
MAX_NODES: Final = 50_000
"""Mappings, lists, texts and numbers in one document; more only come from aliases."""
# PostgreSQL's text has no NUL, and half of a surrogate pair has no UTF-8.
_UNSTORABLE: Final = re.compile("[\\x00\\ud800-\\udfff]")
"""No database stores these."""
# Looked up by exact type: True is an int too, and would come out as 1.
_AS_IS: Final = frozenset({bool, NoneType})
_Trail = tuple[Any, Any] | None
"""(trail of the container, key) of a value; None at the top."""


class _Copier:
    """Copies one document and counts what it copied."""

    def __init__(self) -> None:
        self._left = MAX_NODES

    def copy(self, value: Any, trail: _Trail, depth: int) -> Any:
        """Give a copy; `trail` leads to the value and is read only for a refusal."""
        if type(value) in _AS_IS:
            return value
        self._count(trail, depth)
        if isinstance(value, Mapping):
            return {
                _key(key, trail): self.copy(item, (trail, key), depth + 1)
                for key, item in value.items()
            }
        if isinstance(value, list | tuple):
            return [self.copy(item, (trail, at), depth + 1) for at, item in enumerate(value)]
        return _text(value, trail) if isinstance(value, str) else _number(value, trail)

    def _count(self, trail: _Trail, depth: int) -> None:
        # Counted as it copies: a Python object may hold one list a thousand times, and written out
        # that is a thousand lists.
        self._left -= 1
        if self._left < 0:
            raise BodyTooLarge(
                f"the document holds more than {MAX_NODES} values",
                allowed=(f"at most {MAX_NODES} values",),
                hint="submit fewer jobs at once, or use fewer aliases",
            )
        if depth > MAX_DEPTH:
            raise _spot(None, trail).refuse(
                f"nested deeper than {MAX_DEPTH} levels", hint="flatten the document"
            )


def plain(value: object) -> Any:
    """Give a copy as plain JSON data; integral floats become whole numbers.

    Raises InvalidInput with a pointer for a value that JSON has no word for, BodyTooLarge for too
    many values.
    """
    return _Copier().copy(value, None, 0)


def without_nulls(value: Any) -> Any:
    """Give the same data without keys whose value is null, which Kubernetes reads as absent."""
    if isinstance(value, dict):
        # Keys only: in a list places mean something, so a null there stays to be refused.
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    return list(map(without_nulls, value)) if isinstance(value, list) else value


def _spot(value: object, trail: _Trail) -> Spot:
    if trail is None:
        return Spot(value)
    return _spot(None, trail[0]).child(_harmless(str(trail[1])), value)


def _harmless(text: str) -> str:
    return text.encode("utf-8", "replace").decode().replace("\0", "?")


def _key(key: object, trail: _Trail) -> str:
    if isinstance(key, str):
        return _text(key, (trail, key))
    raise _spot(key, (trail, key)).refuse(
        f"the key {key!r} is not a text", hint=f'put the key into quotes: "{key}"'
    )


def _number(value: object, trail: _Trail) -> int | float:
    if isinstance(value, float):
        return _real(value, trail)
    if isinstance(value, int):
        return _whole(int(value), trail)
    raise _spot(value, trail).refuse(
        f"a {type(value).__name__} has no form in JSON",
        hint="use text, numbers, booleans, lists and mappings only",
    )


def _real(value: float, trail: _Trail) -> int | float:
    if not math.isfinite(value):
        raise _spot(value, trail).refuse(f"{value} is no number", hint="write a finite number")
    # 8.0 and 8 are one number to JSON, but not to Go's decoder of an int32, nor to a digest.
    return _whole(int(value), trail) if value.is_integer() else float(value)


def _whole(value: int, trail: _Trail) -> int:
    # Kubernetes' JSON reads whole numbers as int64, and the integers of both databases end there.
    if abs(value) > MAX_INT64:
        raise _spot("a huge number", trail).refuse(
            "the number does not fit into 64 bits", hint="write a smaller number"
        )
    return value


def _text(value: str, trail: _Trail) -> str:
    if _UNSTORABLE.search(value):
        raise _spot(_harmless(value), trail).refuse(
            "the text holds a NUL or half of a character", hint="remove it"
        )
    return str.__str__(value)  # an enum's own str() would give its name
