"""Turns model objects of the Kubernetes and kubeflow-training clients into plain data.

Recognised by what they carry (`attribute_map`), so neither client is imported. Their own
`to_dict` is not used: it writes Python's names, not the API's.
"""

from collections.abc import Mapping
from datetime import date
from typing import Any

from gateway.errors import InvalidInput

_MAX_DEPTH = 64


def is_model(value: object) -> bool:
    """True for a generated model object."""
    # What the OpenAPI generator writes into every class: attribute in Python -> name on the wire.
    # Both clients have it and share no base class.
    return isinstance(getattr(value, "attribute_map", None), Mapping) and hasattr(value, "to_dict")


def model_to_plain(value: Any, depth: int = 0) -> Any:
    """Give a model's data under the API's field names, without fields that are None."""
    if depth > _MAX_DEPTH:
        raise InvalidInput("the object is nested too deeply", hint="flatten it")
    if is_model(value):
        value = _attributes(value)
    if isinstance(value, Mapping):
        return {key: model_to_plain(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [model_to_plain(item, depth + 1) for item in value]
    # datetime is a subclass of date; only fields that the server writes carry times.
    return value.isoformat() if isinstance(value, date) else value


def _attributes(model: Any) -> dict[str, Any]:
    """Give a model's attributes that are not None, by their names on the wire."""
    named = {wire: getattr(model, name, None) for name, wire in model.attribute_map.items()}
    return {wire: value for wire, value in named.items() if value is not None}
