"""Events and pages: walked through once, resumed after the last one seen."""

import json
from collections.abc import Iterator
from itertools import islice
from typing import Any

import httpx2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.errors import Denied, GatewayError, GatewayUnreachable, InvalidInput
from gateway.schemas.views import EventView, JobPage
from gateway.sdk.live_events import follow_events, past_events, read_events
from gateway.sdk.log_lines import MAX_BREAKS
from gateway.sdk.pages import PAGE_SIZE, pages
from tests.unit.sdk.fake_gateway import (
    NOW,
    Answer,
    FakeGateway,
    a_job,
    cut_after,
    ok,
    problem,
    text,
)


def an_event(number: int, kind: str = "submitted") -> dict[str, Any]:
    return {"id": number, "at": NOW, "kind": kind, "actor": "anna", "detail": "", "data": {}}


def frame(number: int) -> list[str]:
    return [f"id: {number}", "event: submitted", f"data: {json.dumps(an_event(number))}", ""]


def frames(*numbers: int) -> list[str]:
    return [line for number in numbers for line in frame(number)]


def ids(events: Iterator[EventView], count: int) -> list[int]:
    return [event.id for event in islice(events, count)]


def resumed_after(fake: FakeGateway) -> list[str]:
    return [request.headers["last-event-id"] for request in fake.seen]


def test_only_data_lines_are_events() -> None:
    lines = ["retry: 2000", "", ": still here", "", *frames(1), "unknown: x", "data", *frames(2)]
    with pytest.raises(GatewayError, match="not a EventView"):
        list(read_events(lines))  # a `data` field without a value is no event
    lines.remove("data")
    assert [event.id for event in read_events(lines)] == [1, 2]


@pytest.mark.parametrize("separator", ["data: ", "data:", "data:   "])
def test_space_after_the_colon_is_no_part_of_the_value(separator: str) -> None:
    (event,) = read_events([separator + json.dumps(an_event(3))])
    assert (event.id, event.kind, event.actor) == (3, "submitted", "anna")


@settings(deadline=None, max_examples=50)
@given(st.text(max_size=40), st.text(max_size=40))
def test_whatever_an_event_says_comes_out_as_it_went_in(kind: str, detail: str) -> None:
    told = {**an_event(1), "kind": kind, "detail": detail}
    line = EventView.model_validate(told).model_dump_json()
    (event,) = read_events([f"data: {line}"])
    assert (event.kind, event.detail) == (kind, detail)


def test_a_stream_that_ends_is_opened_again_after_the_last_event() -> None:
    fake = FakeGateway([text(*frames(4, 5)), text(), text(*frames(6))])
    assert ids(follow_events(fake.wire(), 3), 3) == [4, 5, 6]
    assert resumed_after(fake) == ["3", "5", "5"]
    assert {request.headers["accept"] for request in fake.seen} == {"text/event-stream"}
    assert len(fake.paused) == 2


def test_a_broken_stream_loses_and_repeats_nothing() -> None:
    fake = FakeGateway([cut_after(*frames(1), *frame(2)[:2]), text(*frames(2, 3))])
    assert ids(follow_events(fake.wire()), 3) == [1, 2, 3]
    assert resumed_after(fake) == ["0", "1"]


@pytest.mark.parametrize("trouble", [problem(503, "unavailable"), problem(429, "overloaded")])
def test_a_busy_gateway_is_asked_again(trouble: Answer) -> None:
    fake = FakeGateway([trouble, text(*frames(1))])
    assert ids(follow_events(fake.wire()), 1) == [1]


@pytest.mark.parametrize(
    ("answer", "kind"),
    [(problem(422, "invalid"), InvalidInput), (problem(403, "denied"), Denied)],
)
def test_a_refusal_ends_the_stream_at_once(answer: Answer, kind: type[GatewayError]) -> None:
    fake = FakeGateway([answer])
    with pytest.raises(kind):
        next(follow_events(fake.wire()))
    assert fake.paused == []


def test_a_gateway_that_never_comes_back_is_given_up_after_its_breaks() -> None:
    fake = FakeGateway([httpx2.ConnectError("refused") for _ in range(MAX_BREAKS + 5)])
    with pytest.raises(GatewayUnreachable):
        next(follow_events(fake.wire()))
    assert len(fake.seen) == MAX_BREAKS + 1


def test_one_event_in_between_starts_the_count_of_breaks_again() -> None:
    down: list[Answer] = [httpx2.ConnectError("refused") for _ in range(MAX_BREAKS)]
    fake = FakeGateway([*down, text(*frames(1)), *down, text(*frames(2))])
    assert ids(follow_events(fake.wire()), 2) == [1, 2]


def page(cursor: str, *numbers: int) -> httpx2.Response:
    return ok({"next_cursor": cursor, "items": [an_event(number) for number in numbers]})


def test_the_past_comes_page_by_page_and_ends() -> None:
    fake = FakeGateway([page("c1", 1, 2), page("c2"), page("", 3)])
    assert [event.id for event in past_events(fake.wire())] == [1, 2, 3]
    asked = [request.url.params.get("cursor") for request in fake.seen]
    assert asked == [None, "c1", "c2"]
    assert {request.url.params["limit"] for request in fake.seen} == {str(PAGE_SIZE)}


def test_no_page_is_asked_for_before_it_is_read() -> None:
    fake = FakeGateway([page("more", 1, 2)])
    assert ids(past_events(fake.wire()), 2) == [1, 2]
    assert len(fake.seen) == 1


def test_filters_go_with_every_page_and_a_limit_of_ones_own_wins() -> None:
    answers = [ok({"next_cursor": cursor, "items": [a_job()]}) for cursor in ("a+b/=", "")]
    fake = FakeGateway(list(answers))
    asked = {"state": "pending", "queue": None, "limit": 2}
    assert len(list(pages(fake.wire(), "/jobs", JobPage, asked))) == 2
    first, second = (dict(request.url.params) for request in fake.seen)
    assert first == {"limit": "2", "state": "pending"}
    assert second == {"limit": "2", "state": "pending", "cursor": "a+b/="}


def test_a_page_that_fails_is_raised_after_those_before_it() -> None:
    fake = FakeGateway([page("c1", 1), problem(422, "invalid", pointer="/cursor")])
    events = past_events(fake.wire())
    assert next(events).id == 1
    with pytest.raises(InvalidInput) as caught:
        next(events)
    assert caught.value.pointer == "/cursor"
