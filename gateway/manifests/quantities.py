"""Kubernetes quantities ("500m", "64Gi", "1e3") as whole numbers in base units.

The grammar is that of Kubernetes' resource.Quantity. Fractions are exact and rounded up, as
Kubernetes rounds; no floats.
"""

import re
from fractions import Fraction
from functools import lru_cache
from math import ceil
from typing import Final

from gateway.core.vocabulary import UNLIMITED
from gateway.errors import InvalidInput
from gateway.schemas.suggesting import UNEXPANDED, closest

_FORM: Final = re.compile(
    r"(?P<sign>[+-]?)(?P<number>[0-9]+(?:\.[0-9]*)?|\.[0-9]+)"
    # The exponent first, for "1E" is an exa but "1E3" a thousand. Two digits bound the power of ten
    # that is computed; amounts end at 2**62 anyway.
    r"(?P<suffix>[eE][+-]?[0-9]{1,2}|[A-Za-z]*)"
)
# Case matters: 1m is a thousandth, 1M a million. There is no Kubernetes unit "K", only k and Ki.
_DECIMAL: Final = {
    "n": -9,
    "u": -6,
    "m": -3,
    "": 0,
    "k": 3,
    "M": 6,
    "G": 9,
    "T": 12,
    "P": 15,
    "E": 18,
}
_BINARY: Final = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
_SUFFIXES: Final = (*_DECIMAL, *_BINARY)
_BYTES: Final = ("memory", "ephemeral-storage", "storage", "hugepages-")
MAX_LENGTH: Final = 64


def parse_quantity(text: str | float, resource: str) -> int:
    """Give a quantity in base units: cpu in millicores, memory in bytes, devices whole.

    cpu and bytes are rounded up, as Kubernetes does. Raises InvalidInput, without a pointer, for
    text of another form, a negative amount, part of a device, or more than can be counted.
    """
    return _parsed(_text_of(text, resource), resource)


@lru_cache(maxsize=4096)
def _parsed(text: str, resource: str) -> int:
    # Manifests repeat a few amounts over and over; refusals are not cached.
    exact = _exact(text, resource)
    amount = exact * 1000 if resource == "cpu" else exact
    if amount.denominator != 1 and not _is_rounded(resource):
        raise _refused(text, f"{resource} is counted whole, not {text}", "ask for a whole number")
    if amount > UNLIMITED:
        raise _refused(text, f"{text} of {resource} is more than can be counted", "ask for less")
    # Up: a pod that asks for a part of a byte gets a whole one, never none.
    return ceil(amount)


def _is_rounded(resource: str) -> bool:
    return resource == "cpu" or resource.startswith(_BYTES)


def _text_of(value: object, resource: str) -> str:
    # `limits: {nvidia.com/gpu: true}` would be one GPU.
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise _refused(value, f"the amount of {resource} is not a quantity", _FORM_HINT)
    text = str(value).strip()
    if not text:
        raise _refused(
            value,
            f"the amount of {resource} is empty",
            "a variable was probably left unset: fill it in or remove the line",
        )
    if len(text) > MAX_LENGTH:
        raise _refused(text[:MAX_LENGTH], f"the amount of {resource} is too long", _FORM_HINT)
    return text


def _exact(text: str, resource: str) -> Fraction:
    match = _FORM.fullmatch(text)
    if match is None:
        raise _refused(text, f"{text!r} is not a quantity of {resource}", _form_hint(text))
    if match["sign"] == "-" and float(match["number"]):
        raise _refused(text, f"{resource} cannot be negative: {text}", "ask for 0 or more")
    return Fraction(match["number"]) * _factor(text, match["suffix"])


def _factor(text: str, suffix: str) -> Fraction:
    if suffix in _BINARY:
        return Fraction(1024 ** _BINARY[suffix])
    if suffix in _DECIMAL:
        return Fraction(10) ** _DECIMAL[suffix]
    if suffix[1:].lstrip("+-").isdecimal():
        return Fraction(10) ** int(suffix[1:])
    hint = _unit_hint(text, suffix)
    raise _refused(
        text, f"{text!r} has the unknown unit {suffix!r}", hint, tuple(filter(None, _SUFFIXES))
    )


def _unit_hint(text: str, suffix: str) -> str:
    # "GB" and "MiB" are what people write for bytes: without the B it is a unit.
    near = closest(suffix.removesuffix("b").removesuffix("B"), _SUFFIXES)
    return f"did you mean {text.removesuffix(suffix)}{near}?" if near else _FORM_HINT


_FORM_HINT: Final = "write a number with an optional unit, for example 4, 500m or 64Gi"


def _form_hint(text: str) -> str:
    if "$" in text:
        return UNEXPANDED
    return f"write {text.replace(' ', '')}" if " " in text else _FORM_HINT


def _refused(value: object, detail: str, hint: str, allowed: tuple[str, ...] = ()) -> InvalidInput:
    return InvalidInput(detail, value=value, hint=hint, allowed=allowed)
