"""Reads JSON text strictly: duplicate keys, NaN and Infinity are refused."""

import json
from typing import Any, NoReturn

from gateway.errors import MalformedBody


def read_json(text: str) -> Any:
    """Give the value of a JSON text.

    Raises json.JSONDecodeError for text that is no JSON at all, since it may be something else;
    MalformedBody for JSON that is refused.
    """
    try:
        # Of equal keys, which RFC 8259 leaves undefined, Python keeps the last: a second `priority`
        # would win unseen. NaN and Infinity are Python's own; no API server reads them.
        return json.loads(text, object_pairs_hook=_mapping, parse_constant=_not_finite)
    except (json.JSONDecodeError, MalformedBody):
        raise
    # A few thousand brackets exhaust the stack of Python's scanner. Depth is judged in plain.py;
    # this only keeps a hostile body from ending as an internal error.
    except RecursionError:
        raise MalformedBody("the JSON is nested too deeply", hint="flatten it") from None
    except ValueError:
        # Python refuses to turn thousands of digits into a number (CVE-2020-10735); the limit is
        # `sys.get_int_max_str_digits()`, 4,300 unless somebody changed it.
        raise MalformedBody("a number has too many digits", hint="write a smaller one") from None


def read_json_at(text: str, start: int) -> tuple[Any, int]:
    """Give the value that begins at this place of a text, and where it ends.

    For one part of a text that is read whole when this raises anything: ValueError in all its
    kinds, or RecursionError.
    """
    return _DECODER.raw_decode(text, start)


def syntax_error(error: json.JSONDecodeError) -> MalformedBody:
    """Give the refusal of text that was meant to be JSON."""
    return MalformedBody(
        f"line {error.lineno}, column {error.colno}: {error.msg}",
        hint="check the commas, quotes and brackets before this place",
    )


def _mapping(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) != len(pairs):
        twice = _first_repeated([name for name, _ in pairs])
        raise MalformedBody(f"the key {twice[:60]!r} is given twice", hint="keep one of the two")
    return mapping


def _first_repeated(names: list[str]) -> str:
    return next(name for name in names if names.count(name) > 1)


def _not_finite(word: str) -> NoReturn:
    raise MalformedBody(f"{word} is not a JSON number", hint="write a finite number")


_DECODER = json.JSONDecoder(object_pairs_hook=_mapping, parse_constant=_not_finite)
