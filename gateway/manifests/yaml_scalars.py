"""What an unquoted YAML word means: null, a boolean, a number or a text.

As kubectl reads YAML 1.1: yes, no, on and off are booleans, while dates and sexagesimal numbers
such as 10:30 stay texts. Knows no document.
"""

import re
from typing import Final

_NULL: Final = re.compile(r"|~|null|Null|NULL")
_TRUE: Final = re.compile(r"yes|Yes|YES|true|True|TRUE|on|On|ON")
_FALSE: Final = re.compile(r"no|No|NO|false|False|FALSE|off|Off|OFF")
_INT: Final = re.compile(r"[-+]?(?:0b[01_]+|0x[0-9a-fA-F_]+|0o?[0-7_]*|[1-9][0-9_]*)")
_FLOAT: Final = re.compile(
    r"[-+]?(?:[0-9][0-9_]*\.[0-9_]*|\.[0-9][0-9_]*|[0-9][0-9_]*(?=[eE]))(?:[eE][-+]?[0-9]+)?"
)
_INFINITE: Final = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_TAG: Final = "tag:yaml.org,2002:"
_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "int": (int,),
    "float": (float, int),
    "bool": (bool,),
    "null": (type(None),),
}
MAX_DIGITS: Final = 100


class NotFinite(ValueError):
    """The word means infinity or not-a-number, for which JSON has no form."""


def plain_scalar(word: str) -> str | int | float | bool | None:
    """Give the value of an unquoted word. Raises NotFinite for .inf and .nan."""
    if _NULL.fullmatch(word):
        return None
    if _TRUE.fullmatch(word) or _FALSE.fullmatch(word):
        return _TRUE.fullmatch(word) is not None
    if len(word) > MAX_DIGITS:
        return word
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
    if kind == "str" or tag == "!":
        return word
    expected = _TYPES.get(kind)
    if expected is None:
        raise ValueError(f"the tag {tag!r} is not allowed")
    value = plain_scalar(word)
    if not isinstance(value, expected) or (kind == "int" and isinstance(value, bool)):
        raise ValueError(f"{word!r} is not of the tag {tag!r}")
    return float(value) if kind == "float" and isinstance(value, int) else value


def _int(word: str) -> int | str:
    digits = word.replace("_", "").lower()
    sign = -1 if digits.startswith("-") else 1
    digits = digits.lstrip("+-")
    if digits.startswith("0") and digits.isdecimal() and digits != "0":
        digits = "0o" + digits[1:]
    try:
        return sign * int(digits, 0)
    except ValueError:
        return word
