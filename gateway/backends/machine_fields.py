"""Reads single fields of a machine type's file; a wrong one is a complaint with its place.

Knows nothing of what the fields mean together.
"""

from collections.abc import Mapping
from typing import Any, Final

from gateway.schemas.suggesting import did_you_mean

MOST: Final = 32_767
"""Largest number that the database's columns for places hold."""


class Complaint(Exception):
    """One thing that is wrong in a file: where, what, what is allowed and what to do."""

    def __init__(
        self,
        pointer: str,
        problem: str,
        *,
        value: object = None,
        allowed: tuple[str, ...] = (),
        hint: str = "",
    ) -> None:
        """Keep the facts; `pointer` is a JSON pointer into the file."""
        super().__init__(problem)
        self.pointer = pointer
        self.problem = problem
        self.value = value
        self.allowed = allowed
        self.hint = hint


def require_keys(
    found: object, at: str, known: tuple[str, ...], required: tuple[str, ...] = ()
) -> Mapping[str, Any]:
    """Give the mapping; raises Complaint for an unknown key, a missing one, or another thing."""
    if not isinstance(found, dict):
        problem = f"is {_kind(found)}, not a mapping"
        raise Complaint(at, problem, value=found, allowed=known, hint="write `key: value` lines")
    for key in sorted(found.keys() - set(known), key=str):
        hint = did_you_mean(str(key), known, "remove it")
        raise Complaint(f"{at}/{key}", "is no known field", value=key, allowed=known, hint=hint)
    for key in sorted(set(required) - found.keys()):
        raise Complaint(f"{at}/{key}", "is missing", allowed=known, hint=f"add {key}")
    return found


def field_of(facts: Mapping[str, Any], key: str, at: str, kind: type, words: str) -> Any:
    """Give a field of this kind, None where it is not written; raises Complaint for another."""
    found = facts.get(key)
    # In Python true is a whole number, in a file it is not.
    is_odd = not isinstance(found, kind) or (kind is int and isinstance(found, bool))
    if found is not None and is_odd:
        problem = f"is {_kind(found)}, not {words}"
        raise Complaint(f"{at}/{key}", problem, value=found, hint=f"write {words}")
    return found


def whole(facts: Mapping[str, Any], key: str, at: str, *, default: int = -1, least: int = 0) -> int:
    """Give a whole number from `least` up; raises Complaint for anything else."""
    found = field_of(facts, key, at, int, "a whole number")
    if found is None:
        return default
    if not least <= found <= MOST:
        hint = f"write a whole number from {least} to {MOST}"
        raise Complaint(f"{at}/{key}", f"is {found}", value=found, hint=hint)
    return int(found)


def whole_list(facts: Mapping[str, Any], key: str, at: str) -> tuple[int, ...]:
    """Give a list of whole numbers, none of them twice; empty where it is not written."""
    found = field_of(facts, key, at, list, "a list of whole numbers") or []
    numbers = {str(place): entry for place, entry in enumerate(found)}
    read = tuple(whole(numbers, place, f"{at}/{key}") for place in numbers)
    if len(set(read)) < len(read) or -1 in read:
        problem = "names a number twice or none at all"
        raise Complaint(f"{at}/{key}", problem, value=found, hint="write each number once")
    return read


def text_of(facts: Mapping[str, Any], key: str, at: str, *, default: str = "") -> str:
    """Give a text; raises Complaint for anything else."""
    found = field_of(facts, key, at, str, "text in quotes")
    return default if found is None else str(found)


def _kind(found: object) -> str:
    words = {dict: "a mapping", list: "a list", str: f"the text {found!r}", type(None): "empty"}
    return words.get(type(found), str(found).lower())
