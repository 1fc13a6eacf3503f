"""Waiting for a job and following its lines, whatever the gateway does meanwhile."""

import re
import time
from typing import Any

import httpx2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.core.vocabulary import TERMINAL_STATES, JobState
from gateway.errors import (
    GatewayError,
    GatewayUnreachable,
    InvalidInput,
    JobFailed,
    NotFound,
    Overloaded,
    TimedOut,
    Unavailable,
)
from gateway.schemas.views import JobView
from gateway.sdk.handle import JobHandle
from gateway.sdk.job_calls import JobCalls
from gateway.sdk.log_lines import (
    CATCH_UP_LINES,
    MAX_BREAKS,
    OVERLAP_LINES,
    LogChoice,
    after_overlap,
    log_lines,
    split_lines,
)
from gateway.sdk.transport import Call, Retries, is_transient
from tests.unit.sdk.fake_gateway import Answer, FakeGateway, a_job, cut_after, ok, problem, text

STATES = tuple(JobState)


def a_handle(*answers: Answer, **job: Any) -> JobHandle:
    calls = JobCalls(FakeGateway(list(answers)).wire(attempts=1))
    return JobHandle(calls, JobView.model_validate(a_job(**job)))


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("wanted", STATES)
def test_each_state_ends_waiting_for_each_other_as_it_should(
    state: JobState, wanted: JobState
) -> None:
    """Equal is reached; an end is a failure unless success passed the wanted state on its way."""
    handle = a_handle(ok(a_job(state.value)))
    if state is wanted or (state is JobState.SUCCEEDED and wanted not in TERMINAL_STATES):
        assert handle.wait({wanted}, timeout=0) is handle
    elif state in TERMINAL_STATES:
        with pytest.raises(JobFailed, match=f"train ended as {state.value}: no reason was given"):
            handle.wait({wanted}, timeout=0)
    else:
        with pytest.raises(TimedOut, match=f"is {state.value} after 0 s, not {wanted.value}"):
            handle.wait({wanted}, timeout=0)


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ({"message": "rank 1: exit 3"}, "rank 1: exit 3"),
        ({"message": "", "end_reason": "StartTimeout"}, "StartTimeout"),
        ({"message": "", "end_reason": None}, "no reason was given"),
    ],
)
def test_a_failure_tells_the_best_reason_there_is(told: dict[str, Any], words: str) -> None:
    with pytest.raises(JobFailed, match=f"ended as failed: {words}") as caught:
        a_handle(ok(a_job("failed", **told))).wait()
    assert caught.value.value == "failed"
    assert caught.value.hint.startswith("read its lines with: gateway logs ")


def test_several_wanted_states_are_named_when_time_runs_out() -> None:
    with pytest.raises(TimedOut, match="after 0 s, not running or succeeded"):
        a_handle(ok(a_job("held"))).wait({"succeeded", "running"}, timeout=0)


@pytest.mark.parametrize("timeout", [0, 0.0, -1.0, -1e9])
def test_no_time_at_all_still_looks_once(timeout: float) -> None:
    assert a_handle(ok(a_job("succeeded"))).wait(timeout=timeout).is_done


def test_a_callback_hears_of_a_new_reason_too() -> None:
    answers = [
        ok(a_job("pending", reason="OverQuota")),
        ok(a_job("pending", reason="OverQuota")),
        ok(a_job("pending", reason="GangDoesNotFit")),
        ok(a_job("succeeded")),
    ]
    heard: list[str] = []
    callbacks = [lambda job: heard.append(f"{job.state.value} {job.reason}")]
    a_handle(*answers).wait(polling_interval=0, callbacks=callbacks)
    assert heard == ["pending OverQuota", "pending GangDoesNotFit", "succeeded None"]


def test_what_a_callback_raises_ends_the_wait() -> None:
    def stop(_job: JobHandle) -> None:
        raise KeyError("enough")

    with pytest.raises(KeyError, match="enough"):
        a_handle(ok(a_job("pending"))).wait(callbacks=[stop])


def test_a_gateway_that_stays_away_is_borne_for_a_while_and_then_raised() -> None:
    handle = a_handle(httpx2.ConnectError("refused"))
    with pytest.raises(TimedOut):
        handle.wait(timeout=0)
    with pytest.raises(IndexError):  # asked again: the patience is not over after one break
        handle.wait(timeout=60, polling_interval=0)


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (["pending", "done"], "'done' is no state"),
        ("Succeeded", "'Succeeded' is no state"),
        ([], "no state to wait for"),
        ("", "'' is no state"),
    ],
)
def test_a_wrong_state_is_refused_with_all_right_ones(status: Any, words: str) -> None:
    with pytest.raises(InvalidInput, match=words) as caught:
        a_handle().wait(status)
    assert caught.value.allowed == tuple(state.value for state in JobState)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (GatewayUnreachable("x"), True),
        (Unavailable("x"), True),
        (Overloaded("x"), True),
        (NotFound("x"), False),
        (InvalidInput("x"), False),
        (GatewayError("x"), False),
    ],
)
def test_waiting_helps_against_some_errors_only(error: GatewayError, *, expected: bool) -> None:
    assert is_transient(error) is expected


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 70), st.sampled_from([None, "", "0", "3", "59", "61", "9" * 30, "-1", "²"]))
def test_a_pause_is_never_longer_than_asked_for_nor_without_bound(
    attempt: int, retry_after: str | None
) -> None:
    pauses: list[float] = []
    Retries(sleep=pauses.append).pause(attempt, retry_after)
    (seconds,) = pauses
    own = min(5.0, 0.2 * 2**attempt)
    asked = {"3": 3.0, "59": 59.0, "61": 60.0, "9" * 30: 60.0}.get(retry_after or "", 0.0)
    assert max(own / 2, asked) <= seconds <= max(own, asked)


def test_no_attempt_is_no_answer() -> None:
    with pytest.raises(GatewayUnreachable, match="no attempt was made"):
        FakeGateway([]).wire(attempts=0).send(Call(method="GET", path="/jobs"))


def test_an_answer_that_leads_elsewhere_is_not_followed_with_the_token() -> None:
    moved = httpx2.Response(302, headers={"Location": "https://elsewhere.example/"})
    fake = FakeGateway([moved])
    with pytest.raises(GatewayError, match="answered 302 without a problem document"):
        fake.wire().send(Call(method="GET", path="/jobs"))
    assert len(fake.seen) == 1


def read(answers: list[Answer], **choice: Any) -> tuple[list[str], FakeGateway]:
    fake = FakeGateway(answers)
    return list(log_lines(JobCalls(fake.wire()), "job", LogChoice(**choice))), fake


def queries(fake: FakeGateway) -> list[str]:
    return [str(seen.url.query, "ascii") for seen in fake.seen if seen.url.path.endswith("/logs")]


@pytest.mark.parametrize(
    ("choice", "query"),
    [
        ({}, "rank=0"),
        ({"rank": 7}, "rank=7"),
        ({"tail": 5}, "rank=0&tail=5"),
        ({"attempt": 2}, "rank=0&attempt=2"),
        ({"attempt": 2, "tail": 5, "rank": 1}, "rank=1&attempt=2&tail=5"),
    ],
)
def test_a_choice_of_lines_is_asked_for_as_it_is(choice: dict[str, Any], query: str) -> None:
    lines, fake = read([text("one")], **choice)
    assert (lines, queries(fake)) == (["one"], [query])


@pytest.mark.parametrize("trouble", [problem(404, "not_found"), problem(503, "unavailable")])
def test_without_following_trouble_is_raised_at_once(trouble: Answer) -> None:
    with pytest.raises(GatewayError):
        read([trouble])


def test_an_attempt_that_is_over_ends_although_the_job_goes_on() -> None:
    lines, fake = read([ok(a_job("running", attempt=3)), text("old")], follow=True, attempt=2)
    assert lines == ["old"]
    assert queries(fake) == ["rank=0&attempt=2&follow=true"]


def test_lines_between_breaks_start_the_count_again() -> None:
    answers: list[Answer] = []
    for number in range(MAX_BREAKS + 10):
        answers += [ok(a_job("running")), cut_after(str(number))]
    lines, fake = read([*answers, ok(a_job("succeeded")), text("end")], follow=True)
    assert lines == [*map(str, range(MAX_BREAKS + 10)), "end"]
    assert queries(fake)[-1].endswith(f"skip={MAX_BREAKS + 10}")


@settings(deadline=None, max_examples=60)
@given(st.lists(st.text("ab\r\u2028é", max_size=4), max_size=12), st.data())
def test_lines_survive_any_number_of_cuts_at_any_place(lines: list[str], data: Any) -> None:
    cuts = sorted(data.draw(st.sets(st.integers(0, len(lines)), max_size=4)))
    answers: list[Answer] = []
    for start, end in zip([0, *cuts], [*cuts, len(lines)], strict=True):
        is_last = end == len(lines) and len(answers) == 2 * len(cuts)
        state = a_job("succeeded" if is_last else "running")
        part = lines[start:end]
        answers += [ok(state), text(*part) if is_last else cut_after(*part)]
    found, _ = read(answers, follow=True)
    assert found == lines


@settings(deadline=None, max_examples=50)
@given(st.binary(max_size=60), st.lists(st.integers(0, 60), max_size=6))
def test_lines_do_not_depend_on_how_the_bytes_are_cut(content: bytes, cuts: list[int]) -> None:
    places = sorted({min(cut, len(content)) for cut in cuts})
    chunks = [content[a:b] for a, b in zip([0, *places], [*places, len(content)], strict=True)]
    whole = list(split_lines([content]))
    assert list(split_lines(chunks)) == whole
    expected = content.decode(errors="replace").split("\n")
    assert whole == (expected[:-1] if expected[-1] == "" else expected)


@settings(deadline=None, max_examples=50)
@given(st.lists(st.sampled_from("abc"), max_size=30), st.integers(0, 30), st.integers(0, 10))
def test_what_comes_after_the_overlap_is_never_given_twice(
    lines: list[str], given_count: int, dropped: int
) -> None:
    """The server may have dropped the oldest lines; what was given last is found from its end."""
    count = min(given_count, len(lines))
    last = lines[:count][-OVERLAP_LINES:]
    found = lines[min(dropped, count) :]
    rest = after_overlap(found, last)
    assert found[len(found) - len(rest) :] == rest
    if last and len(found) > len(lines) - count:
        assert len(rest) <= len(lines) - count


def test_the_overlap_is_short_beside_what_is_caught_up() -> None:
    assert OVERLAP_LINES * 10 <= CATCH_UP_LINES


def test_a_table_for_notebooks_escapes_every_value() -> None:
    hostile = '"><img src=x onerror=alert(1)>&'
    page = a_handle(name=hostile, queue=hostile, reason=None)._repr_html_()
    assert re.findall(r"<(/?\w+)", page).count("td") == 6
    assert "<img" not in page
    assert page.count("&quot;&gt;&lt;img src=x onerror=alert(1)&gt;&amp;") == 2
    assert repr(a_handle()) == "<JobHandle train pending 11111111-2222-3333-4444-555555555555>"


def test_waiting_sleeps_no_longer_than_is_left() -> None:
    started = time.monotonic()
    with pytest.raises(TimedOut):
        a_handle(*[ok(a_job("pending"))] * 3).wait(timeout=0.02, polling_interval=60)
    assert time.monotonic() - started < 5
