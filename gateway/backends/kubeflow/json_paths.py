"""Reads JSON that others wrote without ever raising: what is missing or misshapen is empty.

The cluster's answers are input. One malformed annotation or status may not stop a loop.
"""

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

Json = dict[str, Any]
Kind = TypeVar("Kind", dict[str, Any], list[Any], str)


def at(document: object, *path: str) -> Any:
    """Give what stands at a path of keys; None where it does not exist."""
    for key in path:
        if not isinstance(document, Mapping):
            return None
        document = document.get(key)
    return document


def mapping_at(document: object, *path: str) -> Json:
    """Give the object at a path; empty when there is none."""
    return _or_empty(at(document, *path), dict)


def items_at(document: object, *path: str) -> list[Json]:
    """Give the objects of the list at a path; entries that are not objects are left out."""
    return [entry for entry in _or_empty(at(document, *path), list) if isinstance(entry, dict)]


def text_at(document: object, *path: str) -> str:
    """Give the text at a path; empty when there is none."""
    return _or_empty(at(document, *path), str)


def whole_at(document: object, *path: str) -> int | None:
    """Give the whole number at a path; None when there is none."""
    found = at(document, *path)
    return found if type(found) is int else None  # a bool is a whole number to isinstance


def texts_at(document: object, *path: str) -> dict[str, str]:
    """Give the text entries of the object at a path, as labels and annotations are."""
    return {
        key: value for key, value in mapping_at(document, *path).items() if isinstance(value, str)
    }


def entry_with(entries: Iterable[Json], **wanted: str) -> Json | None:
    """Give the first entry that has all these texts; None when there is none."""
    return next((entry for entry in entries if wanted.items() <= entry.items()), None)


def _or_empty(found: object, kind: type[Kind]) -> Kind:
    return found if isinstance(found, kind) else kind()
