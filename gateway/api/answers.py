"""Answers as bytes, built once from a model; FastAPI would validate and encode them again."""

from collections.abc import Sequence

from pydantic import BaseModel
from starlette.responses import Response

JSON_MEDIA_TYPE = "application/json"


def answer(view: BaseModel, *, status: int = 200, version: int | None = None) -> Response:
    """Give a model as JSON, with its version as ETag when it has one."""
    return written(view.model_dump_json(), status=status, version=version)


def written(text: str, *, status: int = 200, version: int | None = None) -> Response:
    """Give a model that was written as JSON already."""
    headers = {} if version is None else {"ETag": f'"{version}"'}
    return Response(text, status_code=status, headers=headers, media_type=JSON_MEDIA_TYPE)


def items(views: Sequence[BaseModel]) -> Response:
    """Give models as one page without a next one."""
    parts = ",".join(view.model_dump_json() for view in views)
    return Response(f'{{"next_cursor":"","items":[{parts}]}}', media_type=JSON_MEDIA_TYPE)


def nothing() -> Response:
    """Give an answer without a body."""
    return Response(status_code=204)
