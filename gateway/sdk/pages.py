"""Walks through paged lists, one request a page, only as far as the caller reads."""

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from gateway.schemas.base import Page
from gateway.sdk.transport import Call, Wire, read_answer

AnyPage = TypeVar("AnyPage", bound=Page)
PAGE_SIZE = 500


def pages(
    wire: Wire, path: str, model: type[AnyPage], params: Mapping[str, Any] | None = None
) -> Iterator[AnyPage]:
    """Give every page of a list."""
    cursor: str | None = None
    while cursor != "":
        asked = {"limit": PAGE_SIZE, **(params or {}), "cursor": cursor}
        response = wire.send(Call(method="GET", path=path, params=asked))
        page = read_answer(model, response.content)
        yield page
        cursor = page.next_cursor
