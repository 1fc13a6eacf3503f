"""Reading bodies and query strings: each refusal names place, value and what is allowed."""

import pytest
from pydantic import Field

from gateway.api.reading import QueryModel, parse_json, read_model, read_query
from gateway.errors import InvalidInput, MalformedBody
from gateway.schemas.complaints import pointer_to
from gateway.schemas.definitions import DefinitionSet, QueueSpec


class Wanted(QueryModel):
    """Some query parameters."""

    state: tuple[str, ...] = ()
    queue: str = ""
    limit: int = Field(default=100, ge=1, le=500)
    free: bool | None = None


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "Expecting value"),
        (b"{", "Expecting property name"),
        (b"{'a': 1}", "Expecting property name"),
        (b'{"a": 1,}', "line 1"),
        (b'{"a": NaN}', "NaN"),
        (b'{"a": -Infinity}', "Infinity"),
        (b'{"a": 1, "a": 2}', "given twice"),
        (b'{"a": {"b": 1, "b": 2}}', "given twice"),
        (b'{"a": "\xff"}', "UTF-8"),
        (b"\xfe\xff\x00{", "UTF-8"),
        (b"[" * 100_000, "too deep"),
        (b'{"a":' * 100_000, "too deep"),
        (b'{"a": ' + b"9" * 5000 + b"}", "digits"),
    ],
)
def test_a_body_that_is_no_clean_json_is_malformed(body: bytes, words: str) -> None:
    with pytest.raises(MalformedBody, match=words):
        parse_json(body)


def test_a_byte_order_mark_is_no_reason_to_refuse() -> None:
    assert parse_json(b'\xef\xbb\xbf{"a": 1}') == {"a": 1}


@pytest.mark.parametrize(
    ("body", "pointer", "words"),
    [
        (b'{"nam": "x"}', "/name", "is missing"),
        (b'{"name": "x", "wieght": 1}', "/wieght", "unknown field"),
        (b'{"name": "x", "weight": "1"}', "/weight", "integer"),
        (b'{"name": "x", "weight": true}', "/weight", "integer"),
        (b'{"name": "x", "weight": -1}', "/weight", "greater than"),
        (b'{"name": "UPPER"}', "/name", "is no name"),
        (b'{"name": "x", "state": "shut"}', "/state", "allowed values"),
        (b'{"name": "x", "quotas": [{"flavor": "f"}]}', "/quotas/0/resource", "is missing"),
        (
            b'{"name": "x", "quotas": [{"flavor": "f", "resource": "gpu", "nominal": []}]}',
            "/quotas/0/nominal",
            "nominal",
        ),
        (b"[]", "", "the body"),
        (b"null", "", "the body"),
    ],
)
def test_a_definition_is_refused_with_the_place(body: bytes, pointer: str, words: str) -> None:
    with pytest.raises(InvalidInput, match=words) as caught:
        read_model(QueueSpec, body)
    assert caught.value.pointer == pointer
    assert caught.value.hint


def test_a_typo_gets_a_suggestion_at_every_depth() -> None:
    with pytest.raises(InvalidInput) as caught:
        read_model(DefinitionSet, b'{"queues": [{"name": "x", "wieght": 1}]}')
    assert caught.value.pointer == "/queues/0/wieght"
    assert caught.value.hint == "did you mean 'weight'?"
    assert "cohort" in caught.value.allowed


def test_allowed_values_of_a_choice_are_listed() -> None:
    with pytest.raises(InvalidInput) as caught:
        read_model(QueueSpec, b'{"name": "x", "state": "shut"}')
    assert caught.value.allowed == ("open", "paused")
    assert caught.value.value == "shut"


def test_a_query_takes_lists_by_comma_or_repetition() -> None:
    wanted = read_query(Wanted, b"state=pending,held&state=running&limit=5&free=true")
    assert wanted == Wanted(state=("pending", "held", "running"), limit=5, free=True)
    assert read_query(Wanted, b"") == Wanted()


@pytest.mark.parametrize(
    ("query", "pointer"),
    [
        (b"sate=pending", "/sate"),
        (b"limit=0", "/limit"),
        (b"limit=1000000000", "/limit"),
        (b"limit=ten", "/limit"),
        (b"limit=1&limit=2", "/limit"),
        (b"queue=a&queue=b", "/queue"),
        (b"free=perhaps", "/free"),
    ],
)
def test_an_unknown_repeated_or_wrong_parameter_is_refused(query: bytes, pointer: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        read_query(Wanted, query)
    assert caught.value.pointer == pointer


@pytest.mark.parametrize("query", [b"queue=\xff", b"queue=%ff", b"&".join([b"a=1"] * 200)])
def test_a_query_string_of_strange_bytes_is_malformed(query: bytes) -> None:
    with pytest.raises(MalformedBody):
        read_query(Wanted, query)


def test_pointers_escape_what_json_pointers_must() -> None:
    assert pointer_to({"a/b": {"c~d": 1}}, ("a/b", "c~d")) == "/a~1b/c~0d"
