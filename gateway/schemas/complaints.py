"""Turns what a model complains of into our refusals: place, value, what is allowed, what to do.

Used where documents come in: by the server for bodies and queries, by the command line for options
and files. Knows no model and no route.
"""

import types
from collections.abc import Iterable, Mapping
from typing import Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from gateway.errors import InvalidInput
from gateway.schemas.suggesting import did_you_mean

TIMES = frozenset(
    {
        *("datetime_type", "datetime_parsing", "datetime_from_date_parsing"),
        *("datetime_object_invalid", "timezone_aware"),
    }
)
ADD, CORRECT = "add this field", "correct this value"
A_TIME = "write for example 2030-01-31T18:00:00Z"
A_NAME = "lower-case letters, digits and dashes, a letter or digit at both ends"


def refusal(model: type[BaseModel], document: Any, error: ValidationError) -> InvalidInput:
    """Turn pydantic's first complaint into ours: pointer, value, allowed and a suggestion."""
    first, *others = error.errors(include_url=False)
    is_missing = first["type"] == "missing"
    place = pointer_to(document, first["loc"], is_missing=is_missing)
    if first["type"] == "extra_forbidden":
        return unknown_field(str(first["loc"][-1]), fields_at(model, first["loc"][:-1]), place)
    more = f" (and {len(others)} more)" if others else ""
    words, allowed, hint = _told(first)
    return InvalidInput(
        f"{place or 'the body'}: {words}{more}",
        pointer=place,
        value=None if is_missing else first["input"],
        allowed=allowed,
        hint=hint,
    )


def _told(first: Any) -> tuple[str, tuple[str, ...], str]:
    """Give a complaint in words, the values that are allowed, and what to do."""
    kind, context = first["type"], first.get("ctx", {})
    shown = f"{first['input']!s:.100}"
    if kind == "missing":
        return "this field is missing", (), ADD
    if kind in TIMES:
        return f"{shown!r} is not a time with a zone", (), A_TIME
    if kind == "string_pattern_mismatch":
        return f"{shown!r} is no name", (A_NAME,), CORRECT
    if "expected" in context:
        allowed = _choices(str(context["expected"]))
        return f"{shown!r} is none of the allowed values", allowed, _nearest(shown, allowed)
    # "Input should be less than ..." has no subject of its own; the field is one.
    field = next((str(step) for step in reversed(first["loc"]) if isinstance(step, str)), "it")
    words = first["msg"].replace("Input should be", f"{field} must be")
    return words.removeprefix("Value error, "), (), CORRECT


def _choices(expected: str) -> tuple[str, ...]:
    # Enums and literals come as "'open' or 'paused'", the only place where pydantic lists them.
    return tuple(part.strip("' ") for part in expected.replace(" or ", ", ").split(", "))


def _nearest(word: str, allowed: tuple[str, ...]) -> str:
    return did_you_mean(word, allowed, "choose one of the allowed values")


def unknown_field(name: str, known: Iterable[str], place: str) -> InvalidInput:
    """Give the refusal of a field that nobody knows, with the nearest known name."""
    known = tuple(sorted(known))
    return InvalidInput(
        f"unknown field {name[:100]!r}",
        pointer=place,
        value=name,
        allowed=known,
        hint=did_you_mean(name, known, "remove it"),
    )


def pointer_to(document: Any, loc: tuple[int | str, ...], *, is_missing: bool = False) -> str:
    """Give the JSON pointer of a complaint, without the union members that pydantic adds."""
    parts: list[str] = []
    present = document
    for step in loc:
        # pydantic puts the tried union member (`int`, `constrained-str`) behind the field; it is
        # nowhere in the document, which is how it is told from a step.
        if _has(present, step):
            present = present[step]
        elif is_missing and step == loc[-1]:
            present = None
        else:
            break
        parts.append(escaped(step))
    return "".join(f"/{part}" for part in parts)


def escaped(step: int | str) -> str:
    """Give a step as it stands in a JSON pointer."""
    # RFC 6901, section 3. The tilde comes first, or the one of "~1" would be escaped again.
    return str(step).replace("~", "~0").replace("/", "~1")


def _has(document: Any, step: int | str) -> bool:
    if isinstance(document, list):
        return isinstance(step, int) and step < len(document)
    return isinstance(document, Mapping) and step in document


def fields_at(model: type[BaseModel], loc: tuple[int | str, ...]) -> tuple[str, ...]:
    """Give the field names of the model that stands at this place."""
    present = model
    for step in loc:
        field = present.model_fields.get(str(step))
        if field is not None:
            present = next(iter(_models_in(field.annotation)), present)
    return tuple(present.model_fields)


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    if get_origin(annotation) in {tuple, list, dict, Union, types.UnionType}:
        return [found for part in get_args(annotation) for found in _models_in(part)]
    return []
