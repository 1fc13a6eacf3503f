"""Reads JSON that others wrote without ever raising: what is missing or misshapen is empty.

The cluster's answers are input. One malformed annotation or status may not stop a loop.
"""

from collections.abc import Mapping
from typing import Any

Json = dict[str, Any]


def at(document: object, *path: str) -> Any:
    """Give what stands at a path of keys; None where it does not exist."""
    for key in path:
        if not isinstance(document, Mapping):
            return None
        document = document.get(key)
    return document


def mapping_at(document: object, *path: str) -> Json:
    """Give the object at a path; empty when there is none."""
    found = at(document, *path)
    return found if isinstance(found, dict) else {}


def items_at(document: object, *path: str) -> list[Json]:
    """Give the objects of the list at a path; entries that are not objects are left out."""
    found = at(document, *path)
    if not isinstance(found, list):
        return []
    return [entry for entry in found if isinstance(entry, dict)]


def text_at(document: object, *path: str) -> str:
    """Give the text at a path; empty when there is none."""
    found = at(document, *path)
    return found if isinstance(found, str) else ""


def whole_at(document: object, *path: str) -> int | None:
    """Give the whole number at a path; None when there is none."""
    found = at(document, *path)
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def texts_at(document: object, *path: str) -> dict[str, str]:
    """Give the text entries of the object at a path, as labels and annotations are."""
    return {
        key: value for key, value in mapping_at(document, *path).items() if isinstance(value, str)
    }
