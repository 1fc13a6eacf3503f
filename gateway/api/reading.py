"""Reads bodies and query strings strictly: one bad byte, field or type is told with its place.

Standard parsers forgive too much for a gateway: they take the last of two equal keys, NaN, and
unknown fields. Nothing here knows a route.
"""

import codecs
import json
from typing import Any, TypeVar, get_origin
from urllib.parse import parse_qsl

from pydantic import BaseModel, ConfigDict, ValidationError

from gateway.errors import InvalidInput, MalformedBody
from gateway.manifests.json_text import read_json, syntax_error
from gateway.schemas.complaints import escaped, refusal

Model = TypeVar("Model", bound=BaseModel)
MAX_QUERY_FIELDS = 100


class QueryModel(BaseModel):
    """Base of every route's query parameters; unknown ones are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


def parse_json(body: bytes) -> Any:
    """Give the value of a JSON body.

    Raises:
        MalformedBody: not UTF-8, not JSON, NaN or infinite, nested too deep, or a key twice.
    """
    try:
        # RFC 8259, section 8.1, lets a parser ignore a byte order mark; some editors add one.
        return read_json(body.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise MalformedBody(
            f"byte {error.start} of the body is not UTF-8", hint="send UTF-8"
        ) from error
    except json.JSONDecodeError as error:
        raise syntax_error(error) from error


def read_model(model: type[Model], body: bytes) -> Model:
    """Give the model that a JSON body holds; raises MalformedBody or InvalidInput."""
    # Read twice: pydantic's own parser takes the last of two equal keys, and says of bad JSON less.
    document = parse_json(body)
    # Between quotes JSON writes NUL as an escape only, so bodies without one need no walk.
    if b"\\u0000" in body:
        _refuse_nul(document, "")
    try:
        return model.model_validate_json(body.removeprefix(codecs.BOM_UTF8))
    except ValidationError as error:
        raise refusal(model, document, error) from error


def _refuse_nul(value: Any, place: str) -> None:
    """Refuse NUL in any text: SQLite would store it, PostgreSQL cannot."""
    if isinstance(value, str) and "\0" in value:
        raise InvalidInput("the text holds a NUL", pointer=place, value=value, hint="remove it")
    if isinstance(value, list):
        for index, item in enumerate(value):
            _refuse_nul(item, f"{place}/{index}")
    if isinstance(value, dict):
        for key, item in value.items():
            _refuse_nul(key, place)
            _refuse_nul(item, f"{place}/{escaped(key)}")


def read_query(model: type[Model], query_string: bytes) -> Model:
    """Give the model that a query string holds; a field of tuple type may stand several times.

    Raises:
        InvalidInput: an unknown or repeated parameter, or a wrong value.
        MalformedBody: bytes that are no query string.
    """
    values: dict[str, Any] = {}
    for key, value in _parameters(query_string):
        _refuse_nul(value, f"/{key}")
        field = model.model_fields.get(key)
        # An empty part is left out, so that `state=` and a trailing comma filter by nothing.
        if field is not None and get_origin(field.annotation) is tuple:
            values.setdefault(key, []).extend(part for part in value.split(",") if part)
        elif key in values:
            raise InvalidInput(f"{key} is given twice", pointer=f"/{key}", hint="give it once")
        else:
            values[key] = value
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise refusal(model, values, error) from error


def _parameters(query_string: bytes) -> list[tuple[str, str]]:
    try:
        return parse_qsl(
            query_string.decode("ascii"),
            keep_blank_values=True,
            errors="strict",
            max_num_fields=MAX_QUERY_FIELDS,
        )
    except ValueError as error:
        raise MalformedBody("the query string cannot be read", hint="encode it") from error
