"""One request as routes see it: conditions, keys, types, and that nothing is silently ignored."""

from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import Field
from starlette.datastructures import Headers
from starlette.requests import Request

from gateway.api.cursors import Cursors
from gateway.api.dependencies import (
    ASK,
    JSON,
    YAML_TYPES,
    Ask,
    PageQuery,
    plain,
    require_name,
    with_body,
    with_query,
)
from gateway.errors import GatewayError, InvalidInput, NotSupportedYet, UnsupportedMediaType
from gateway.schemas.base import WireModel
from gateway.service.context import Caller, Gateway


class Wanted(PageQuery):
    """A list with one filter."""

    queue: str = ""


class Body(WireModel):
    """A body with one field."""

    count: int = Field(ge=0)


def an_ask(
    headers: dict[str, str] | None = None, query: bytes = b"", body: bytes = b"", **changes: Any
) -> Ask:
    values: dict[str, Any] = {
        "gateway": cast(Gateway, None),
        "caller": Caller(name="anna", namespaces=("team-a",)),
        "cursors": Cursors("one"),
        "request_id": "request-1",
        "path": "/api/v1/things",
        "query_string": query,
        "headers": Headers(headers or {}),
        "body": body,
    }
    return Ask(**{**values, **changes})


def a_request(ask: Ask) -> Request:
    return Request({"type": "http", ASK: ask})


@pytest.mark.parametrize(
    ("header", "version"),
    [
        (None, None),
        ("*", None),
        (" * ", None),
        ('"0"', 0),
        ('"7"', 7),
        (' "7" ', 7),
        ("7", 7),
        ('"0042"', 42),
        (f'"{2**62}"', 2**62),
    ],
)
def test_a_condition_is_the_version_that_was_read(header: str | None, version: int | None) -> None:
    headers = {} if header is None else {"If-Match": header}
    assert an_ask(headers).if_version() == version


@pytest.mark.parametrize(
    "header",
    [
        *("", '""', '"', "abc", '"abc"', '"-1"', '"+1"', '"1.0"', '"1e3"', 'W/"3"', '"1", "2"'),
        *('"٣"', '"²"', '"1 2"', '""3""', "'3'", f'"{"9" * 20}"', '"' + "1" * 5000 + '"', "**"),
    ],
)
def test_what_is_no_tag_of_ours_is_refused_with_an_example(header: str) -> None:
    headers = Headers(raw=[(b"if-match", header.encode())])
    with pytest.raises(InvalidInput, match="If-Match holds no ETag that we gave") as caught:
        _with(headers).if_version()
    assert caught.value.pointer == "/headers/if-match"
    assert '"3"' in caught.value.hint


def _with(headers: Headers) -> Ask:
    ask = an_ask()
    object.__setattr__(ask, "headers", headers)
    return ask


@pytest.mark.parametrize("header", ["*", '"3"', "", "nonsense"])
def test_a_condition_that_is_not_looked_at_is_refused_and_not_ignored(header: str) -> None:
    with pytest.raises(NotSupportedYet) as caught:
        an_ask({"If-Match": header}).refuse_condition()
    assert (caught.value.pointer, caught.value.hint) == ("/headers/if-match", "leave it out")
    an_ask().refuse_condition()


@pytest.mark.parametrize("key", [None, "", "run-7", "ü" * 10, "a b", "x" * 10_000])
def test_a_key_is_taken_as_it_is(key: str | None) -> None:
    headers = Headers(raw=[] if key is None else [(b"idempotency-key", key.encode("latin-1"))])
    assert _with(headers).idempotency_key() == key


@pytest.mark.parametrize("key", ["a\x00b", "a\nb", "\x7f", "\x85", "tab\there", "a\xa0b"])
def test_a_key_with_control_characters_is_refused(key: str) -> None:
    with pytest.raises(InvalidInput, match="control characters") as caught:
        _with(Headers(raw=[(b"idempotency-key", key.encode("latin-1"))])).idempotency_key()
    assert (caught.value.pointer, caught.value.hint) == ("/idempotency_key", "use a UUID")


@pytest.mark.parametrize(
    ("header", "kind"),
    [
        ("application/json", JSON),
        ("Application/JSON", JSON),
        ("application/json; charset=utf-8", JSON),
        (" application/json ;x", JSON),
        ("application/yaml", "application/yaml"),
        ("text/yaml;charset=utf-8", "text/yaml"),
        ("APPLICATION/X-YAML", "application/x-yaml"),
    ],
)
def test_a_type_is_read_without_case_and_parameters(header: str, kind: str) -> None:
    assert an_ask({"Content-Type": header}).require_type(JSON, *YAML_TYPES) == kind


@pytest.mark.parametrize(
    ("header", "shown"),
    [
        (None, "nothing"),
        ("", "nothing"),
        (";charset=utf-8", "nothing"),
        ("text/plain", "text/plain"),
        ("application/jsonx", "application/jsonx"),
        ("application/json, text/plain", "application/json, text/plain"),
        ("multipart/form-data; boundary=x", "multipart/form-data"),
    ],
)
def test_another_type_is_refused_with_all_that_are_read(header: str | None, shown: str) -> None:
    ask = an_ask({} if header is None else {"Content-Type": header})
    with pytest.raises(UnsupportedMediaType) as caught:
        ask.require_type(JSON, *YAML_TYPES)
    assert caught.value.detail == f"a body of type {shown!r} is not read here"
    assert caught.value.allowed == (JSON, *YAML_TYPES)
    assert caught.value.hint == "send Content-Type: application/json"


@pytest.mark.parametrize(
    ("query", "pointer"),
    [
        (b"x=1", "/x"),
        (b"x", "/x"),
        (b"%78=1", "/x"),
        (b"a+b=1&c=2", "/a b"),
        (b"=1", "/"),
        (b"&", "/"),
        (b"\xff=1", "/ÿ"),
    ],
)
def test_a_parameter_where_none_belongs_is_named(query: bytes, pointer: str) -> None:
    for read in (plain, lambda request: with_body(request, Body)):
        ask = an_ask({"Content-Type": JSON}, query, b"" if read is plain else b'{"count": 1}')
        with pytest.raises(InvalidInput, match="unknown field") as caught:
            read(a_request(ask))
        assert caught.value.pointer == pointer


@pytest.mark.parametrize("body", [b"", b" ", b"\r\n\t ", b"{}", b" { } "])
def test_no_body_and_an_empty_object_are_the_same(body: bytes) -> None:
    ask = an_ask({"Content-Type": JSON}, b"", body)
    assert plain(a_request(ask)) is ask
    assert with_query(a_request(ask), Wanted) == (ask, Wanted())


@pytest.mark.parametrize(
    ("headers", "body", "code"),
    [
        ({}, b"{}", "unsupported_media_type"),
        ({"Content-Type": "text/plain"}, b"x", "unsupported_media_type"),
        ({"Content-Type": JSON}, b'{"x": 1}', "invalid"),
        ({"Content-Type": JSON}, b"[]", "invalid"),
        ({"Content-Type": JSON}, b"null", "invalid"),
        ({"Content-Type": JSON}, b"x", "malformed"),
    ],
)
def test_a_body_where_none_belongs_is_refused(
    headers: dict[str, str], body: bytes, code: str
) -> None:
    for read in (plain, lambda request: with_query(request, Wanted)):
        with pytest.raises(GatewayError) as caught:
            read(a_request(an_ask(headers, b"", body)))
        assert caught.value.code == code


def test_a_body_is_read_once_its_type_is_right() -> None:
    ask = an_ask({"Content-Type": JSON}, b"", b'{"count": 3}')
    assert with_body(a_request(ask), Body) == (ask, Body(count=3))
    with pytest.raises(UnsupportedMediaType):
        with_body(a_request(an_ask({}, b"", b'{"count": 3}')), Body)


@settings(deadline=None, max_examples=50)
@given(
    st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=30),
    st.integers(1, 500),
    st.integers(1, 500),
)
def test_a_cursor_is_good_for_any_page_size_of_the_same_list(
    position: str, first: int, second: int
) -> None:
    ask = an_ask()
    sealed = ask.seal_cursor(position, Wanted(queue="q", limit=first))
    assert ask.open_cursor(Wanted(queue="q", limit=second, cursor=sealed)) == position


@pytest.mark.parametrize(
    ("changes", "queue"),
    [
        ({"caller": Caller(name="ben", namespaces=("team-a",))}, "q"),
        ({"path": "/api/v1/others"}, "q"),
        ({"cursors": Cursors("another database")}, "q"),
        ({}, "other"),
        ({}, ""),
    ],
)
def test_a_cursor_is_good_for_nobody_and_nothing_else(changes: dict[str, Any], queue: str) -> None:
    sealed = an_ask().seal_cursor("4711", Wanted(queue="q"))
    with pytest.raises(InvalidInput, match="not one that this list gave out") as caught:
        an_ask(**changes).open_cursor(Wanted(queue=queue, cursor=sealed))
    assert caught.value.pointer == "/cursor"


@settings(deadline=None, max_examples=50)
@given(st.binary(max_size=24), st.data())
def test_only_the_very_text_that_was_given_out_opens(position: bytes, data: Any) -> None:
    cursors, text = Cursors("one"), position.hex()
    sealed = cursors.seal(text, "scope")
    others = st.text("ABab01-_=", max_size=len(sealed) + 2) | st.builds(
        lambda at, letter: sealed[:at] + letter + sealed[at + 1 :],
        st.integers(0, len(sealed)),
        st.sampled_from(["", "A", "Q", "g", "w", "=", "_", "\n"]),
    )
    edited = data.draw(others)
    if edited == sealed:
        assert cursors.open(edited, "scope") == text
    elif edited:
        with pytest.raises(InvalidInput):
            cursors.open(edited, "scope")


def test_a_long_false_cursor_is_shown_cut_short() -> None:
    with pytest.raises(InvalidInput) as caught:
        Cursors("one").open("x" * 10_000, "scope")
    assert caught.value.value == "x" * 400


@pytest.mark.parametrize(("inside", "path"), [("a", "b"), ("A", "a"), ("a", "a "), ("a", "x" * 99)])
def test_a_name_in_a_body_must_be_the_one_of_the_path(inside: str, path: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        require_name(inside, path)
    assert (caught.value.pointer, caught.value.value, caught.value.allowed) == (
        "/name",
        inside,
        (path,),
    )
    assert len(caught.value.detail) < 120
    require_name(path, path)
