"""Batches read in passing come out, or are refused, as if each had been parsed whole."""

import json
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.datastructures import Headers

from gateway.api import batch_reading
from gateway.api.batch_reading import Outcome, read_entries
from gateway.api.cursors import Cursors
from gateway.api.dependencies import Ask
from gateway.api.submissions import MAX_BATCH_JOBS
from gateway.api.templates import Reading, Templates
from gateway.errors import GatewayError, InvalidInput
from gateway.service.context import Caller, Gateway
from gateway.settings import Settings
from tests.unit.manifests.building import a_manifest

SERVER = cast(Gateway, SimpleNamespace(settings=Settings(database_url="sqlite:////unused.db")))


def an_ask(body: bytes, media_type: str = "application/json") -> Ask:
    """Give a request of somebody who may use team-a."""
    return Ask(
        gateway=SERVER,
        caller=Caller(name="anna", namespaces=("team-a",)),
        cursors=Cursors("key"),
        request_id="request",
        path="/api/v1/jobs:batch",
        query_string=b"",
        headers=Headers({"content-type": media_type}),
        body=body,
    )


def told(outcome: Outcome) -> Any:
    if isinstance(outcome, GatewayError):
        return type(outcome), vars(outcome)
    return outcome.job.spec, outcome.job.digest, outcome.key


def read(body: bytes) -> Any:
    """Read as the server does."""
    try:
        return [told(outcome) for outcome in read_entries(an_ask(body))]
    except GatewayError as error:
        return told(error)


def read_in_full(body: bytes) -> Any:
    """Parse all of the body first."""
    ask = an_ask(body)
    try:
        entries = batch_reading._entries(ask)
        return [told(batch_reading._outcome(ask, entry)) for entry in entries]
    except GatewayError as error:
        return told(error)


def an_entry(number: int, **changes: Any) -> dict[str, Any]:
    return {"manifest": a_manifest(metadata={"name": f"job-{number}"}), **changes}


def a_batch(count: int = 3) -> str:
    entries = [an_entry(number, idempotency_key=f"key-{number}") for number in range(count)]
    return json.dumps({"jobs": entries})


@pytest.fixture(autouse=True)
def memory(monkeypatch: pytest.MonkeyPatch) -> Templates:
    """Give the reading an empty memory that learns at once."""
    monkeypatch.setattr("gateway.api.templates.LEARN_SECONDS", -1.0)
    memory = Templates()
    monkeypatch.setattr("gateway.api.batch_reading.templates", memory)
    return memory


def test_entries_of_one_template_are_recognised_and_the_same(memory: Templates) -> None:
    body = a_batch(20).encode()
    assert read(body) == read_in_full(body)
    assert len(memory._known) == 1
    assert read(body) == read_in_full(body)


@pytest.mark.parametrize("separators", [(",", ":"), (" ,\n", " :\t")])
@pytest.mark.parametrize("around", ["{}", " \r\n{}\n", "\ufeff{}"])
def test_spaces_and_a_byte_order_mark_change_nothing(
    separators: tuple[str, str], around: str
) -> None:
    batch = json.dumps(json.loads(a_batch()), separators=separators)
    body = around.replace("{}", batch).encode()
    assert [len(each) for each in read(body)] == [3, 3, 3]
    assert read(body) == read_in_full(body)


GOOD = json.dumps(an_entry(0))
TWICE = GOOD.replace('{"manifest"', '{"manifest": {}, "manifest"')


@pytest.mark.parametrize(
    "body",
    [
        *("", "{", "[]", "5", "{}", '{"jobs": []}', '{"jobs": {}}', '{"jobs": [', '{"jobs": [,]}'),
        *('{"jobs": [] ', f'{{"jobs": [{GOOD}], "jobs": []}}', f'{{"jobs": [{GOOD}], "x": 1}}'),
        *(f'{{"jobs": [{GOOD},]}}', f'{{"jobs": [{GOOD} {GOOD}]}}', f'{{"jobs": [{GOOD}]}} x'),
        *(f'{{"jobs": [{GOOD}, NaN]}}', f'{{"jobs": [{GOOD}, {TWICE}]}}', f'{{"jobs": [{GOOD}}}'),
        f'{{"jobs": [{GOOD}, {"[" * 100_000}',
        f'{{"jobs": [{GOOD}, {"9" * 5000}]}}',
        f'{{"jobs": [{GOOD}, "text", null, 5, [], {{}}, {{"manifest": 5}}, {GOOD}]}}',
        f'{{"jobs": [{GOOD}, {GOOD.replace("job-0", "Job_0")}, {GOOD.replace("job", "j" * 60)}]}}',
        f'{{"jobs": [{",".join([GOOD] * (MAX_BATCH_JOBS + 1))}]}}',
    ],
)
def test_what_is_unusual_is_told_as_by_reading_in_full(body: str) -> None:
    read(f'{{"jobs": [{GOOD}]}}'.encode())
    assert read(body.encode()) == read_in_full(body.encode())


def test_bytes_that_are_no_utf_8_are_refused() -> None:
    body = a_batch().replace("job-2", "job-\udcff").encode(errors="surrogateescape")
    assert read(body) == read_in_full(body)


@settings(deadline=None, max_examples=150)
@given(st.data())
def test_a_batch_that_was_tampered_with_is_read_as_if_nothing_were_remembered(
    data: st.DataObject,
) -> None:
    text = a_batch(2)
    read(text.encode())
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(start + 12, len(text))))
    put = data.draw(st.text('"\\,:{}[]-aZ0 \n', max_size=6) | st.just(text[start:end] * 2))
    body = (text[:start] + put + text[end:]).encode()
    assert read(body) == read_in_full(body)


@pytest.mark.parametrize("key", [5, None, "", "a" * 300, "ä", '"'])
def test_keys_come_out_as_they_were_written(key: Any) -> None:
    entries = [an_entry(1, idempotency_key="usual"), an_entry(2, idempotency_key=key)]
    body = json.dumps({"jobs": entries}).encode()
    for _ in range(2):
        assert read(body) == read_in_full(body)


def test_documents_of_yaml_are_a_batch_too() -> None:
    text = "\n---\n".join(json.dumps(a_manifest(metadata={"name": name})) for name in ("a", "b"))
    first, second = read_entries(an_ask(text.encode(), "application/yaml"))
    assert isinstance(first, Reading)
    assert isinstance(second, Reading)
    assert (first.job.name, second.job.name) == ("a", "b")


def test_a_key_that_is_no_text_is_refused_alone() -> None:
    entries = [an_entry(1, idempotency_key=5), an_entry(2)]
    first, second = read_entries(an_ask(json.dumps({"jobs": entries}).encode()))
    assert isinstance(first, InvalidInput)
    assert isinstance(second, Reading)
