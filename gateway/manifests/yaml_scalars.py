"""What an unquoted YAML word means: null, a boolean, a number or a text.

As kubectl reads YAML 1.1: yes, no, on and off are booleans, while dates and sexagesimal numbers
such as 10:30 stay texts. Knows no document.
"""

import re
from types import NoneType
from typing import Final

# YAML 1.1 as go-yaml v2 reads it, which kubectl uses; but for the single letters y and n. Those
# stay texts, as in PyYAML: as a value or key, `y` is the name of an axis more often than a yes.
_WORDS: Final[dict[str, bool | None]] = {
    **dict.fromkeys(["", "~", "null", "Null", "NULL"]),
    **dict.fromkeys(["yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"], True),
    **dict.fromkeys(["no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"], False),
}
# In turn: binary, hexadecimal, octal in both spellings (0755 of YAML 1.1, 0o755 of 1.2), decimal.
_INT: Final = re.compile(r"[-+]?(?:0b[01_]+|0x[0-9a-fA-F_]+|0o?[0-7_]*|[1-9][0-9_]*)")
# With a point; or without one, and then an exponent must follow. PyYAML wants the point and makes
# a text of 1e3, where Go makes a number; a quantity would then have two meanings.
_FLOAT: Final = re.compile(
    r"[-+]?(?:[0-9][0-9_]*\.[0-9_]*|\.[0-9][0-9_]*|[0-9][0-9_]*(?=[eE]))(?:[eE][-+]?[0-9]+)?"
)
_INFINITE: Final = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_TAG: Final = "tag:yaml.org,2002:"
_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "int": (int,),
    "float": (float, int),
    "bool": (bool,),
    "null": (NoneType,),
}
"""What an unquoted word must be to go with a tag."""
# `int(text, 0)` refuses 0755 on purpose; spelled 0o755 it is read. 08 is no octal and stays a
# text, as in PyYAML, while Go goes on to read a float.
_OLD_OCTAL: Final = re.compile(r"\A([-+]?)0(?=[0-9]+\Z)")
# Python needs quadratic time for digits, and refuses them beyond 4,300. No number in a manifest
# has a hundred; a hash may, and is a text.
MAX_DIGITS: Final = 100


class NotFinite(ValueError):
    """The word means infinity or not-a-number, for which JSON has no form."""


def plain_scalar(word: str) -> str | int | float | bool | None:
    """Give the value of an unquoted word. Raises NotFinite for .inf and .nan."""
    if word in _WORDS:
        return _WORDS[word]
    return word if len(word) > MAX_DIGITS else _number(word)


def _number(word: str) -> str | int | float:
    """Give the number that a word is; any other word as it is."""
    if _INT.fullmatch(word):
        return _int(word)
    if _FLOAT.fullmatch(word):
        return float(word.replace("_", ""))
    if _INFINITE.fullmatch(word):
        raise NotFinite(word)
    return word


def tagged_scalar(tag: str, word: str) -> str | int | float | bool | None:
    """Give the value of a word with an explicit tag.

    Raises ValueError for a tag that plain data has no need of, or a word that is not of its tag.
    """
    kind = tag.removeprefix(_TAG)
    if kind in {"!", "str"}:
        return word
    if kind not in _TYPES:
        raise ValueError(f"the tag {tag!r} is not allowed")
    value = plain_scalar(word)
    if type(value) not in _TYPES[kind]:
        raise ValueError(f"{word!r} is not of the tag {tag!r}")
    return float(value) if kind == "float" and isinstance(value, int) else value


def _int(word: str) -> int | str:
    digits = _OLD_OCTAL.sub(r"\g<1>0o", word.replace("_", "").lower())
    try:
        return int(digits, 0)
    except ValueError:
        return word
