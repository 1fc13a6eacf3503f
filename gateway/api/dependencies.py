"""What a route works with: who asks, the gateway, and the request's parts, read strictly.

A route calls exactly one of `plain`, `with_query`, `with_body` or `ask_of`; the first three refuse
every query parameter and body that the route did not name. They are plain functions because
FastAPI would send each synchronous dependency through the thread pool on its own.
"""

from dataclasses import dataclass
from typing import TypeVar, cast
from urllib.parse import unquote_plus

from pydantic import BaseModel, Field
from starlette.datastructures import Headers
from starlette.requests import Request

from gateway.api.cursors import Cursors
from gateway.api.reading import QueryModel, read_model, read_query
from gateway.errors import InvalidInput, NotSupportedYet, UnsupportedMediaType
from gateway.schemas.base import WireModel
from gateway.schemas.complaints import unknown_field
from gateway.service.context import Caller, Gateway

Model = TypeVar("Model", bound=BaseModel)
Query = TypeVar("Query", bound=QueryModel)
ASK = "training_gateway.ask"
"""Key of the Ask in an ASGI scope."""
JSON = "application/json"
YAML_TYPES = ("application/yaml", "application/x-yaml", "text/yaml")
DEFAULT_LIMIT = 100
MAX_LIMIT = 500


class PageQuery(QueryModel):
    """Parameters of every paged list."""

    cursor: str = Field(default="", max_length=400)
    """next_cursor of the page before."""
    limit: int = Field(default=DEFAULT_LIMIT, ge=1, le=MAX_LIMIT)
    """Most items on this page."""


class Nothing(WireModel):
    """A body without fields."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One authenticated request with its body already read."""

    gateway: Gateway
    caller: Caller
    cursors: Cursors
    request_id: str
    path: str
    query_string: bytes
    headers: Headers
    body: bytes

    @property
    def media_type(self) -> str:
        """The body's media type without parameters, in lower case."""
        return self.headers.get("content-type", "").split(";")[0].strip().lower()

    def require_type(self, *allowed: str) -> str:
        """Give the body's media type; raises UnsupportedMediaType for any other."""
        if self.media_type in allowed:
            return self.media_type
        raise UnsupportedMediaType(
            f"a body of type {self.media_type or 'nothing'!r} is not read here",
            pointer="/headers/content-type",
            value=self.media_type,
            allowed=allowed,
            hint=f"send Content-Type: {allowed[0]}",
        )

    def if_version(self) -> int | None:
        """Give the version that If-Match asks for; None for no condition or `*`.

        Raises:
            InvalidInput: not an entity tag as we give them.
        """
        text = self.headers.get("if-match")
        if text is None or text.strip() == "*":
            return None
        # If-Match compares strongly (RFC 9110, section 13.1.1): a weak tag, W/"3", never matches.
        # Lists of tags are legal too, but no client of ours has a use for one.
        number = text.strip().removeprefix('"').removesuffix('"')
        if not number.isascii() or not number.isdigit() or len(number) > len(str(2**62)):
            raise InvalidInput(
                "If-Match holds no ETag that we gave",
                pointer="/headers/if-match",
                value=text,
                hint='send the ETag of the object you read, for example "3"',
            )
        return int(number)

    def refuse_condition(self) -> None:
        """Refuse If-Match where it is not looked at: a condition must never be ignored."""
        if "if-match" in self.headers:
            raise NotSupportedYet(
                "If-Match is not looked at here yet",
                pointer="/headers/if-match",
                hint="leave it out",
            )

    def idempotency_key(self) -> str | None:
        """Give the caller's key for this submission; the service checks its length."""
        # It is stored and shown in errors; Starlette decodes headers as Latin-1, so anything comes.
        key = self.headers.get("idempotency-key")
        if key is not None and not key.isprintable():
            raise InvalidInput(
                "the idempotency key holds control characters",
                pointer="/idempotency_key",
                hint="use a UUID",
            )
        return key

    def open_cursor(self, query: PageQuery) -> str:
        """Give the position in a page's cursor; raises InvalidInput when it is not ours."""
        return self.cursors.open(query.cursor, self._scope(query))

    def seal_cursor(self, position: str, query: PageQuery) -> str:
        """Give the cursor of the next page."""
        return self.cursors.seal(position, self._scope(query))

    def _scope(self, query: PageQuery) -> str:
        # The limit is left out: a client may change the size of its pages as it goes.
        filters = query.model_dump_json(exclude={"cursor", "limit"})
        return f"{self.caller.name}\0{self.path}\0{filters}"


def ask_of(request: Request) -> Ask:
    """Give the request as the intake left it; the route reads the rest itself."""
    return cast(Ask, request.scope[ASK])


def plain(request: Request) -> Ask:
    """Give a request that has neither query parameters nor a body."""
    ask = ask_of(request)
    _refuse_query(ask)
    _refuse_body(ask)
    return ask


def with_query(request: Request, model: type[Query]) -> tuple[Ask, Query]:
    """Give a request with these query parameters and no body."""
    ask = ask_of(request)
    _refuse_body(ask)
    return ask, read_query(model, ask.query_string)


def with_body(request: Request, model: type[Model]) -> tuple[Ask, Model]:
    """Give a request with this JSON body and no query parameters."""
    ask = ask_of(request)
    _refuse_query(ask)
    ask.require_type(JSON)
    return ask, read_model(model, ask.body)


def require_name(inside: str, in_path: str) -> None:
    """Refuse a body that names another object than the path; names do not change."""
    if inside != in_path:
        raise InvalidInput(
            f"the path names {in_path[:64]!r}, the body {inside!r}",
            pointer="/name",
            value=inside,
            allowed=(in_path,),
            hint="a name cannot change; create a new one and delete the old",
        )


def _refuse_query(ask: Ask) -> None:
    if ask.query_string:
        name = unquote_plus(ask.query_string.decode("latin-1").split("&")[0].split("=")[0])
        raise unknown_field(name, (), f"/{name}")


def _refuse_body(ask: Ask) -> None:
    # An empty object is let through, since many clients send one with every POST.
    if ask.body.strip():
        ask.require_type(JSON)
        read_model(Nothing, ask.body)
