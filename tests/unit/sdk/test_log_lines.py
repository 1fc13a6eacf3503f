"""Lines as one iterator: nothing lost and nothing twice, whatever breaks."""

from collections.abc import Sequence

import httpx2
import pytest

from gateway.errors import GatewayUnreachable, NotFound
from gateway.sdk.job_calls import JobCalls
from gateway.sdk.log_lines import LogChoice, after_overlap, log_lines, split_lines
from tests.unit.sdk.fake_gateway import Answer, FakeGateway, a_job, cut_after, ok, problem, text

RUNNING, DONE = a_job("running"), a_job("succeeded")


def read(answers: Sequence[Answer], **choice: object) -> tuple[list[str], FakeGateway]:
    fake = FakeGateway(list(answers))
    wanted = LogChoice(**choice)  # type: ignore[arg-type]  # fields by name
    return list(log_lines(JobCalls(fake.wire()), "job", wanted)), fake


def queries(fake: FakeGateway) -> list[str]:
    return [str(seen.url.query, "ascii") for seen in fake.seen if seen.url.path.endswith("/logs")]


def test_without_follow_one_answer_is_all() -> None:
    lines, fake = read([text("one", "two")], rank=3)
    assert lines == ["one", "two"]
    assert queries(fake) == ["rank=3"]


def test_a_broken_connection_goes_on_after_the_lines_given() -> None:
    answers = [ok(RUNNING), cut_after("one", "two"), ok(DONE), text("three")]
    lines, fake = read(answers, follow=True)
    assert lines == ["one", "two", "three"]
    assert queries(fake) == ["rank=0&attempt=1&follow=true", "rank=0&attempt=1&follow=true&skip=2"]


def test_a_stream_that_ends_while_the_job_runs_is_opened_again() -> None:
    answers = [ok(RUNNING), text("one"), ok(DONE), text("two")]
    lines, _ = read(answers, follow=True)
    assert lines == ["one", "two"]


def test_following_waits_for_a_job_that_has_not_started() -> None:
    answers = [ok(a_job("pending")), ok(a_job("held")), ok(DONE), text("one")]
    lines, fake = read(answers, follow=True)
    assert lines == ["one"]
    assert len(fake.paused) == 2


def test_a_reserved_job_without_lines_yet_is_waited_for() -> None:
    answers = [ok(a_job("reserved")), problem(404, "not_found"), ok(DONE), text("one")]
    lines, _ = read(answers, follow=True)
    assert lines == ["one"]


def test_a_job_that_ended_without_starting_has_no_lines() -> None:
    lines, _ = read([ok(a_job("cancelled", attempt=0))], follow=True)
    assert lines == []


def test_a_requeued_job_goes_on_with_its_next_attempt() -> None:
    answers = [ok(RUNNING), text("first try"), ok(a_job("succeeded", attempt=2)), text("second")]
    lines, fake = read(answers, follow=True)
    assert lines == ["first try", "second"]
    assert queries(fake)[1] == "rank=0&attempt=2&follow=true"


def test_an_unknown_rank_of_an_ended_job_is_an_error() -> None:
    with pytest.raises(NotFound):
        read([ok(DONE), problem(404, "not_found")], follow=True)


def test_a_broken_tail_is_continued_after_the_lines_given_last() -> None:
    answers = [ok(RUNNING), cut_after("8", "9"), ok(DONE), text("7", "8", "9", "10")]
    lines, fake = read(answers, follow=True, tail=2)
    assert lines == ["8", "9", "10"]
    assert queries(fake) == ["rank=0&attempt=1&follow=true&tail=2", "rank=0&attempt=1&tail=1000"]


def test_a_gateway_that_never_comes_back_is_given_up() -> None:
    broken: list[Answer] = []
    for _ in range(100):
        broken += [ok(RUNNING), httpx2.ReadError("cut")]
    with pytest.raises(GatewayUnreachable):
        read(broken, follow=True)


def test_only_line_feeds_end_a_line() -> None:
    chunks = [b"a\r50%\r100%\nb\xe2", b"\x80\xa8c\n", b"\xff\nlast"]
    assert list(split_lines(chunks)) == ["a\r50%\r100%", "b\u2028c", "\ufffd", "last"]


@pytest.mark.parametrize(
    ("found", "last", "expected"),
    [
        (["1", "2", "3"], ["1", "2"], ["3"]),
        (["1", "2"], ["1", "2"], []),
        (["2", "3", "4"], ["1", "2"], ["3", "4"]),
        (["8", "9"], ["1", "2"], ["8", "9"]),
        (["x", "x", "x", "y"], ["x"], ["y"]),
        (["5", "6"], [], ["5", "6"]),
        ([], ["1"], []),
    ],
)
def test_the_overlap_is_found_from_its_end(
    found: list[str], last: list[str], expected: list[str]
) -> None:
    assert after_overlap(found, last) == expected
