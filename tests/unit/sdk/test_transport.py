"""Requests: tried again where that is safe, and failures come out as the server's classes."""

import json
from typing import Any

import httpx2
import pytest
from pydantic import BaseModel

from gateway.errors import (
    GatewayError,
    GatewayUnreachable,
    InvalidInput,
    NameTaken,
    Overloaded,
    Unavailable,
)
from gateway.schemas.definitions import CohortView, FlavorView, PriorityClassView, QueueView
from gateway.sdk.transport import Call, Retries, read_answer
from tests.unit.sdk.fake_gateway import FakeGateway, ok, problem

GET = Call(method="GET", path="/jobs")
POST = Call(method="POST", path="/queues", body={"name": "x"})
REPEATABLE = Call(method="POST", path="/jobs", body={}, is_repeatable=True)


def test_every_request_carries_the_token_and_goes_below_the_api() -> None:
    fake = FakeGateway([ok({})])
    fake.wire().send(POST)
    (request,) = fake.seen
    assert request.url == "http://127.0.0.1:1/api/v1/queues"
    assert request.headers["authorization"] == "Bearer secret"
    assert request.headers["content-type"] == "application/json"
    assert request.content == b'{"name":"x"}'


def test_what_was_not_said_is_not_sent() -> None:
    fake = FakeGateway([ok({})])
    fake.wire().send(Call(method="GET", path="/jobs", params={"queue": None, "limit": 5}))
    assert fake.seen[0].url.query == b"limit=5"


@pytest.mark.parametrize("status", [429, 503])
def test_a_busy_gateway_is_asked_again_after_the_time_it_names(status: int) -> None:
    fake = FakeGateway([problem(status, "overloaded"), ok({"fine": True})])
    assert fake.wire().send(POST).json() == {"fine": True}
    assert fake.paused == [7.0]


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [(429, "overloaded", Overloaded), (503, "database_unavailable", Unavailable)],
)
def test_a_gateway_that_stays_busy_raises_its_own_error(
    status: int, code: str, kind: type[GatewayError]
) -> None:
    fake = FakeGateway([problem(status, code) for _ in range(3)])
    with pytest.raises(kind):
        fake.wire().send(GET)
    assert len(fake.seen) == 3


def test_a_refusal_is_raised_at_once_with_its_facts() -> None:
    answer = problem(422, "invalid", pointer="/queue", hint="did you mean 'a'?", allowed=["a"])
    fake = FakeGateway([answer])
    with pytest.raises(InvalidInput, match="invalid it is") as caught:
        fake.wire().send(REPEATABLE)
    assert (caught.value.pointer, caught.value.allowed) == ("/queue", ("a",))
    assert caught.value.hint == "did you mean 'a'?"
    assert len(fake.seen) == 1


def test_a_connection_that_was_never_made_is_tried_again_for_every_request() -> None:
    fake = FakeGateway([httpx2.ConnectError("refused"), ok({})])
    fake.wire().send(POST)
    assert len(fake.seen) == 2


@pytest.mark.parametrize("call", [GET, REPEATABLE])
def test_a_lost_answer_is_asked_for_again_when_that_does_no_harm(call: Call) -> None:
    fake = FakeGateway([httpx2.ReadError("cut"), ok({})])
    fake.wire().send(call)
    assert len(fake.seen) == 2


def test_a_lost_answer_is_not_asked_for_again_when_it_might_do_harm() -> None:
    fake = FakeGateway([httpx2.ReadError("cut")])
    with pytest.raises(GatewayUnreachable, match="no answer from"):
        fake.wire().send(POST)


def test_a_gateway_that_is_not_there_says_what_to_do() -> None:
    fake = FakeGateway([httpx2.ConnectError("refused") for _ in range(3)])
    with pytest.raises(GatewayUnreachable) as caught:
        fake.wire().send(GET)
    assert "gateway dev" in caught.value.hint
    assert isinstance(caught.value, ConnectionError)


@pytest.mark.parametrize(
    ("status", "kind"), [(502, GatewayError), (404, GatewayError), (503, Unavailable)]
)
def test_an_answer_of_something_else_is_an_error_too(status: int, kind: type[GatewayError]) -> None:
    fake = FakeGateway([httpx2.Response(status, text="<html>proxy</html>") for _ in range(3)])
    with pytest.raises(kind, match=str(status)):
        fake.wire().send(GET)


@pytest.mark.parametrize(
    ("model", "view"),
    [
        (
            QueueView,
            {
                "name": "research",
                "quotas": [{"flavor": "default", "resource": "gpu", "nominal": 8, "new": 1}],
                "caps": {"new": 1},
            },
        ),
        (CohortView, {"name": "lab"}),
        (FlavorView, {"name": "default"}),
        (PriorityClassView, {"name": "high", "value": 10}),
    ],
)
def test_what_a_newer_server_says_besides_is_left_out(
    model: type[BaseModel], view: dict[str, Any]
) -> None:
    known = read_answer(model, json.dumps({**without_news(view), "version": 1}))
    newer = read_answer(model, json.dumps({**view, "version": 1, "new": {"a": 1}}))
    assert newer == known


def without_news(value: Any) -> Any:
    """Give a document without the fields that this release does not know."""
    if isinstance(value, list):
        return [without_news(item) for item in value]
    if isinstance(value, dict):
        return {key: without_news(item) for key, item in value.items() if key != "new"}
    return value


def test_a_stream_that_is_refused_raises_like_any_request() -> None:
    fake = FakeGateway([problem(409, "name_taken")])
    with pytest.raises(NameTaken), fake.wire().stream(GET):
        pass


def test_pauses_grow_and_stay_bounded() -> None:
    pauses: list[float] = []
    retries = Retries(sleep=pauses.append, first_seconds=1.0, longest_seconds=4.0)
    for attempt in range(6):
        retries.pause(attempt)
    retries.pause(0, retry_after="100000")
    retries.pause(0, retry_after="Wed, 21 Oct 2026 07:28:00 GMT")
    assert all(0.5 <= seconds <= 4.0 for seconds in pauses[:6])
    assert pauses[5] >= 2.0
    assert pauses[6] == 60.0
    assert pauses[7] <= 1.0
