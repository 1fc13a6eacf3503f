"""Turns model objects of the Kubernetes and kubeflow-training clients into plain data.

Recognised by what they carry (`attribute_map`), so neither client is imported. Their own
`to_dict` is not used: it writes Python's names, not the API's.
"""

from collections.abc import Mapping
from datetime import date, datetime
from typing import Any

from gateway.errors import InvalidInput

_MAX_DEPTH = 64


def is_model(value: object) -> bool:
    """True for a generated model object."""
    return isinstance(getattr(value, "attribute_map", None), Mapping) and hasattr(value, "to_dict")


def model_to_plain(value: Any, depth: int = 0) -> Any:
    """Give a model's data under the API's field names, without fields that are None."""
    if depth > _MAX_DEPTH:
        raise InvalidInput("the object is nested too deeply", hint="flatten it")
    if is_model(value):
        named = ((wire, getattr(value, name, None)) for name, wire in value.attribute_map.items())
        return {wire: model_to_plain(item, depth + 1) for wire, item in named if item is not None}
    if isinstance(value, Mapping):
        return {key: model_to_plain(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [model_to_plain(item, depth + 1) for item in value]
    if isinstance(value, datetime | date):
        return value.isoformat()
    return value
