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
        return json.loads(text, object_pairs_hook=_mapping, parse_constant=_not_finite)
    except (json.JSONDecodeError, MalformedBody):
        raise
    except RecursionError:
        raise MalformedBody("the JSON is nested too deeply", hint="flatten it") from None
    except ValueError:
        # Python refuses to turn thousands of digits into a number.
        raise MalformedBody("a number has too many digits", hint="write a smaller one") from None


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
