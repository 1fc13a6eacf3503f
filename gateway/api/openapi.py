"""The OpenAPI document: what FastAPI sees of the routes, and what they read by themselves.

`python -m gateway.api.openapi FILE` writes it; a test compares it with the file in the docs.
"""

import json
import sys
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel
from starlette.responses import Response

from gateway.api.reading import QueryModel
from gateway.schemas.problems import Problem

TITLE = "training-gateway"
REFERENCE = "#/components/schemas/{model}-Input"
"""Requests and answers differ in what is required, so their models have different names."""
JSON = "application/json"
Document = dict[str, Any]


def described(
    answer: type[BaseModel] | str | None = None,
    *,
    status: int = 200,
    query: type[QueryModel] | None = None,
    body: type[BaseModel] | Document | None = None,
) -> Document:
    """Give the keyword arguments that document a route which reads its request by itself.

    Args:
        answer: model of the answer, or a media type for one that is no JSON.
        status: status of success.
        query: model of the query parameters.
        body: model of the JSON body, or a ready `content` object.
    """
    extra: Document = {}
    if query is not None:
        extra["parameters"] = _parameters(query)
    if body is not None:
        # FastAPI would document a body only as a parameter of the function, and then read it
        # itself.
        extra["requestBody"] = {"required": True, "content": _content(body)}
    told: Document = {"description": "Success"}
    if isinstance(answer, str):
        told["content"] = {answer: {"schema": {"type": "string"}}}
    elif answer is not None:
        told["model"] = answer
    return {
        "status_code": status,
        "responses": {status: told},
        "openapi_extra": extra,
        "response_model": None,
        "response_class": Response,
    }


def _content(body: type[BaseModel] | Document) -> Document:
    if isinstance(body, dict):
        return body
    return {JSON: {"schema": body.model_json_schema(ref_template=REFERENCE)}}


def _parameters(query: type[QueryModel]) -> list[Document]:
    schema = query.model_json_schema(ref_template=REFERENCE)
    definitions = schema.get("$defs", {})
    parameters = []
    for name, field in schema["properties"].items():
        told = {key: value for key, value in field.items() if key not in {"description", "title"}}
        parameters.append(
            {
                "name": name,
                "in": "query",
                "required": name in schema.get("required", ()),
                "description": field.get("description", ""),
                "schema": {**told, "$defs": definitions} if definitions else told,
            }
        )
    return parameters


def install(app: FastAPI, open_paths: frozenset[str]) -> None:
    """Let the application give the whole document; `open_paths` need no token."""

    def build() -> Document:
        if not app.openapi_schema:
            app.openapi_schema = _build(app, open_paths)
        return app.openapi_schema

    app.openapi = build  # type: ignore[method-assign]


def _build(app: FastAPI, open_paths: frozenset[str]) -> Document:
    document = get_openapi(
        title=TITLE,
        version=app.version,
        summary=app.summary,
        description=app.description,
        routes=app.routes,
    )
    components = document.setdefault("components", {})
    schemas = components.setdefault("schemas", {})
    schemas["Problem"] = Problem.model_json_schema()
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    document["security"] = [{"token": []}]
    for path, operations in document["paths"].items():
        for operation in operations.values():
            _complete(operation, schemas)
            if path in open_paths:
                operation["security"] = []
    components["schemas"] = dict(sorted(schemas.items()))
    return document


def _complete(operation: Document, schemas: Document) -> None:
    """Add the problem answer and move definitions to where references look for them."""
    responses = operation["responses"]
    responses.pop("422", None)
    responses["default"] = {
        "description": "Problem details",
        "content": {
            "application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}
        },
    }
    places = [parameter["schema"] for parameter in operation.get("parameters", ())]
    content = operation.get("requestBody", {}).get("content", {})
    places += [told["schema"] for told in content.values()]
    for place in places:
        for name, schema in place.pop("$defs", {}).items():
            # An answer's schema marks fields with defaults as required, a request's does not.
            # FastAPI names the two apart in this way as soon as both exist.
            schemas.setdefault(f"{name}-Input", schema)


def render(app: FastAPI) -> str:
    """Give the document as it stands in the docs."""
    return json.dumps(app.openapi(), indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def main(arguments: list[str]) -> int:
    """Write the document to the file named."""
    from gateway.api.app import documented_app  # noqa: PLC0415 - the app imports this module

    if len(arguments) != 1:
        sys.stderr.write("usage: python -m gateway.api.openapi FILE\n")
        return 2
    Path(arguments[0]).write_text(render(documented_app()))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
