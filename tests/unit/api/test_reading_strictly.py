"""Bodies and query strings read the same on both databases: marks, NUL, halves, twins, depth."""

import codecs
import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import AwareDatetime, BaseModel

from gateway.api.reading import (
    MAX_QUERY_FIELDS,
    QueryModel,
    read_model,
    read_query,
)
from gateway.api.routes.definitions import ApplyQuery
from gateway.api.routes.jobs import JobsQuery, _filter
from gateway.errors import GatewayError, InvalidInput, MalformedBody
from gateway.schemas.base import WireModel, instant
from gateway.schemas.complaints import fields_at, pointer_to, unknown_field
from gateway.schemas.definitions import CohortSpec, DefinitionSet, FlavorSpec, QueueSpec

KINDS = (QueueSpec, CohortSpec, FlavorSpec)


@pytest.mark.parametrize("kind", KINDS)
def test_a_byte_order_mark_changes_nothing(kind: type[BaseModel]) -> None:
    body = b'{"name": "x"}'
    assert read_model(kind, codecs.BOM_UTF8 + body) == read_model(kind, body)
    with pytest.raises(MalformedBody):
        read_model(kind, codecs.BOM_UTF8 * 2 + body)


@pytest.mark.parametrize(
    ("document", "pointer"),
    [
        ({"flavors": [{"name": "x", "node_labels": {"a": "b\0"}}]}, "/flavors/0/node_labels/a"),
        ({"flavors": [{"name": "x", "node_labels": {"a\0": "b"}}]}, "/flavors/0/node_labels"),
        (
            {"flavors": [{"name": "x", "node_labels": {"a/b~": "\0"}}]},
            "/flavors/0/node_labels/a~1b~0",
        ),
        ({"queues": [{"name": "x", "namespaces": ["a", "\0"]}]}, "/queues/0/namespaces/1"),
        ({"kind": "\0"}, "/kind"),
        ({"\0": 1}, ""),
    ],
)
def test_nul_is_refused_with_its_place_whatever_the_database(
    document: dict[str, Any], pointer: str
) -> None:
    with pytest.raises(InvalidInput, match="the text holds a NUL") as caught:
        read_model(DefinitionSet, json.dumps(document).encode())
    assert (caught.value.pointer, caught.value.hint) == (pointer, "remove it")


def test_the_letters_of_an_escape_are_no_nul() -> None:
    body = rb'{"name": "x", "node_labels": {"a": "\\u0000"}}'
    assert read_model(FlavorSpec, body).node_labels == {"a": "\\u0000"}


@pytest.mark.parametrize("half", [b"\\ud800", b"\\udc00", b"\\ud800x", b"\\udc00\\ud800"])
def test_half_a_character_is_refused(half: bytes) -> None:
    with pytest.raises(GatewayError) as caught:
        read_model(FlavorSpec, b'{"name": "x", "node_labels": {"a": "' + half + b'"}}')
    assert caught.value.status in {400, 422}
    assert caught.value.hint


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", "malformed"),
        (b"{", "malformed"),
        (b'{"name": "x"} {}', "malformed"),
        (b'{"name": "x", "name": "y"}', "malformed"),
        (b'{"name": NaN}', "malformed"),
        (b'{"name": "\xff"}', "malformed"),
        (b'["x"]', "invalid"),
        (b'"x"', "invalid"),
        (b"5", "invalid"),
        (b"{}", "invalid"),
        (b'{"name": null}', "invalid"),
        (b'{"name": ["x"]}', "invalid"),
        (b'{"name": ""}', "invalid"),
        (b'{"name": "a.b"}', "invalid"),
        (b'{"name": "-a"}', "invalid"),
        (b'{"name": "a\\n"}', "invalid"),
        (b'{"name": "\xc3\xa9"}', "invalid"),
        (b'{"name": "x", "naem": 1}', "invalid"),
        (b'{"name": "x", "": 1}', "invalid"),
    ],
)
def test_every_kind_of_definition_refuses_the_same_bodies(
    kind: type[BaseModel], body: bytes, code: str
) -> None:
    with pytest.raises(GatewayError) as caught:
        read_model(kind, body)
    assert (caught.value.code, bool(caught.value.hint)) == (code, True)


@pytest.mark.parametrize("kind", KINDS)
def test_many_mistakes_are_counted_and_the_first_told(kind: type[BaseModel]) -> None:
    with pytest.raises(InvalidInput, match=r"/name: .* \(and 2 more\)$"):
        read_model(kind, b'{"name": "UPPER", "x": 1, "y": 2}')


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=12,
)


def refusal_of(body: bytes) -> GatewayError | None:
    try:
        read_model(DefinitionSet, body)
    except GatewayError as error:
        return error
    return None


@settings(deadline=None, max_examples=50)
@given(JSON_VALUES)
def test_any_json_at_all_is_a_definition_or_a_told_refusal(value: Any) -> None:
    error = refusal_of(json.dumps(value).encode())
    assert error is None or (error.status in {400, 422} and error.detail and error.hint)


@settings(deadline=None, max_examples=50)
@given(st.dictionaries(st.text(max_size=6), JSON_VALUES, max_size=3), st.data())
def test_a_pointer_leads_to_what_it_names(document: dict[str, Any], data: Any) -> None:
    steps: list[int | str] = []
    present: Any = document
    while isinstance(present, dict | list) and present and data.draw(st.booleans()):
        keys = list(present) if isinstance(present, dict) else list(range(len(present)))
        step = data.draw(st.sampled_from(keys))
        steps.append(step)
        present = present[step]
    pointer = pointer_to(document, (*steps, "no such step \0"))
    parts = [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]
    assert parts == [str(step) for step in steps]


def test_a_missing_field_is_named_where_it_should_stand() -> None:
    assert pointer_to({"a": [{}]}, ("a", 0, "name"), is_missing=True) == "/a/0/name"
    assert pointer_to({"a": [{}]}, ("a", 0, "name")) == "/a/0"
    assert pointer_to({"a": [{}]}, ("a", 7, "name"), is_missing=True) == "/a"


def test_fields_are_known_at_every_depth_of_a_document() -> None:
    assert fields_at(DefinitionSet, ()) == (
        *("kind", "flavors", "cohorts", "priority_classes", "queues"),
    )
    assert "weight" in fields_at(DefinitionSet, ("queues", 0))
    assert fields_at(DefinitionSet, ("queues", 0, "quotas", 3))[:2] == ("flavor", "resource")
    assert fields_at(QueueSpec, ("nothing",)) == tuple(QueueSpec.model_fields)


@pytest.mark.parametrize(
    ("name", "hint"),
    [("wieght", "did you mean 'weight'?"), ("zzz", "remove it"), ("", "remove it")],
)
def test_an_unknown_field_is_told_with_the_nearest_known_one(name: str, hint: str) -> None:
    error = unknown_field(name, ("weight", "cohort"), f"/{name}")
    assert (error.hint, error.allowed, error.value) == (hint, ("cohort", "weight"), name)
    assert len(unknown_field("x" * 1000, (), "/").detail) < 130


class Query(QueryModel):
    """Every kind of parameter that routes have."""

    text: str = ""
    number: int = 0
    flag: bool | None = None
    words: tuple[str, ...] = ()
    when: AwareDatetime | None = None


@pytest.mark.parametrize(
    ("query", "values"),
    [
        (b"", {}),
        (b"&&", {}),
        (b"text=", {"text": ""}),
        (b"text=a%20b+c", {"text": "a b c"}),
        (b"text=%C3%A9", {"text": "é"}),
        (b"text=a=b", {"text": "a=b"}),
        (b"words=a,b&words=c", {"words": ("a", "b", "c")}),
        (b"words=,a,,b,", {"words": ("a", "b")}),
        (b"words=", {}),
        (b"words=a&words=a", {"words": ("a", "a")}),
        (b"flag=false", {"flag": False}),
        (b"number=-7", {"number": -7}),
        (b"when=2026-01-01T00:00:00Z", {"when": datetime(2026, 1, 1, tzinfo=UTC)}),
    ],
)
def test_a_query_string_is_read(query: bytes, values: dict[str, Any]) -> None:
    assert read_query(Query, query) == Query(**values)


@pytest.mark.parametrize(
    ("query", "pointer"),
    [
        (b"text=%00", "/text"),
        (b"words=a,%00", "/words"),
        (b"number=%00", "/number"),
        (b"text=a&text=a", "/text"),
        (b"flag=true&flag=true", "/flag"),
        (b"number=1.5", "/number"),
        (b"number=1e3", "/number"),
        (b"number=0x10", "/number"),
        (b"number=", "/number"),
        (b"number=" + b"9" * 5000, "/number"),
        (b"flag=", "/flag"),
        (b"when=2026-01-01T00:00:00", "/when"),
        (b"when=yesterday", "/when"),
        (b"when=2026-13-01T00:00:00Z", "/when"),
        (b"Text=a", "/Text"),
        (b"text[]=a", "/text[]"),
        (b"=a", "/"),
    ],
)
def test_a_wrong_parameter_is_named(query: bytes, pointer: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        read_query(Query, query)
    assert caught.value.pointer == pointer
    assert caught.value.hint


@pytest.mark.parametrize(
    "query", [b"text=\xc3\xa9", b"text=%C3", b"text=%ED%A0%80", b"a=1&" * (MAX_QUERY_FIELDS + 1)]
)
def test_bytes_that_are_no_query_string_are_malformed(query: bytes) -> None:
    with pytest.raises(MalformedBody, match="the query string cannot be read"):
        read_query(Query, query)


@pytest.mark.parametrize("value", ["plan", "yes", "1", "True", "maybe"])
def test_a_dry_run_is_never_taken_for_a_real_one(value: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        read_query(ApplyQuery, f"dry_run={value}".encode())
    assert caught.value.allowed == ("", "true", "false")


INSTANTS = st.datetimes(datetime(1970, 1, 1), datetime(9999, 12, 30))  # noqa: DTZ001 - zone below


@settings(deadline=None, max_examples=50)
@given(INSTANTS, st.integers(-14 * 60, 14 * 60))
def test_since_is_exact_to_the_microsecond_in_every_zone(moment: datetime, minutes: int) -> None:
    since = moment.replace(tzinfo=UTC).astimezone(timezone(timedelta(minutes=minutes)))
    wanted = _filter(JobsQuery(since=since))
    assert instant(wanted.since_us) == moment.replace(tzinfo=UTC)


@pytest.mark.parametrize("text", ["0001-01-01T00:00:00Z", "1969-12-31T23:59:59.999999Z"])
def test_since_before_the_epoch_filters_nothing(text: str) -> None:
    assert _filter(JobsQuery.model_validate({"since": text})).since_us == 0


class Choice(WireModel):
    """A field of two types."""

    amount: int | Literal["all"]


def test_a_field_of_two_types_is_pointed_to_without_the_types() -> None:
    with pytest.raises(InvalidInput) as caught:
        read_model(Choice, b'{"amount": []}')
    assert caught.value.pointer == "/amount"
