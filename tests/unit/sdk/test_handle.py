"""Handles: waiting, the end, and what is shown of a job."""

import pytest

from gateway.errors import GatewayUnreachable, InvalidInput, JobFailed, TimedOut
from gateway.schemas.views import JobView
from gateway.sdk.handle import JobHandle
from gateway.sdk.job_calls import JobCalls
from tests.unit.sdk.fake_gateway import Answer, FakeGateway, a_job, ok, problem

STARTED = "2026-01-01T00:01:00Z"
ENDED = "2026-01-01T00:03:30Z"


def a_handle(*answers: Answer, **job: object) -> JobHandle:
    fake = FakeGateway(list(answers))
    view = JobView.model_validate(a_job(**job))  # type: ignore[arg-type]  # fields by name
    return JobHandle(JobCalls(fake.wire(attempts=1)), view)


def test_waiting_ends_with_success_and_tells_of_each_change() -> None:
    states = ["pending", "pending", "running", "running", "succeeded"]
    handle = a_handle(*(ok(a_job(state)) for state in states))
    heard: list[str] = []
    done = handle.wait(polling_interval=0, callbacks=[lambda job: heard.append(job.state)])
    assert done is handle
    assert heard == ["pending", "running", "succeeded"]


@pytest.mark.parametrize("state", ["failed", "cancelled"])
def test_an_end_that_was_not_waited_for_raises(state: str) -> None:
    handle = a_handle(ok(a_job(state, message="rank 1 exited with 3")))
    with pytest.raises(JobFailed, match=f"{state}: rank 1 exited with 3") as caught:
        handle.wait()
    assert isinstance(caught.value, RuntimeError)
    assert handle.is_done


def test_an_end_that_was_waited_for_does_not_raise() -> None:
    assert a_handle(ok(a_job("failed"))).wait({"succeeded", "failed"}).state == "failed"


def test_a_job_that_succeeded_has_been_running() -> None:
    assert a_handle(ok(a_job("succeeded"))).wait({"running"}).state == "succeeded"
    with pytest.raises(JobFailed, match="ended as succeeded"):
        a_handle(ok(a_job("succeeded"))).wait({"failed"})


def test_time_that_runs_out_says_why_the_job_waits() -> None:
    handle = a_handle(ok(a_job("pending", reason="OverQuota")))
    with pytest.raises(TimedOut, match=r"pending \(OverQuota\) after 0 s") as caught:
        handle.wait(timeout=0)
    assert isinstance(caught.value, TimeoutError)
    assert handle.id in caught.value.hint


def test_a_gateway_that_restarts_is_waited_for() -> None:
    answers: list[Answer] = [problem(503, "database_unavailable"), ok(a_job("succeeded"))]
    assert a_handle(*answers).wait(polling_interval=0).state == "succeeded"


def test_a_refusal_while_waiting_is_raised() -> None:
    with pytest.raises(Exception, match="not_found it is"):
        a_handle(problem(404, "not_found")).wait()


@pytest.mark.parametrize("status", [{"done"}, set(), "finished"])
def test_an_unknown_state_is_refused_before_anything_is_sent(status: set[str]) -> None:
    with pytest.raises(InvalidInput) as caught:
        a_handle().wait(status)
    assert "succeeded" in caught.value.allowed


def test_the_result_tells_how_long_it_ran() -> None:
    job = a_job("succeeded", started_at=STARTED, ended_at=ENDED, exit_code=0, attempt=2)
    result = a_handle(ok(job)).result()
    assert (result.run_seconds, result.attempts, result.exit_code) == (150.0, 2, 0)
    assert a_handle(ok(a_job("succeeded"))).result().run_seconds == 0.0


def test_a_verb_shows_what_it_did() -> None:
    handle = a_handle(ok(a_job("held")), ok(a_job("pending")), ok(a_job("cancelled")))
    assert handle.hold().state == "held"
    assert handle.release().state == "pending"
    assert handle.cancel().is_done


def test_a_lost_answer_to_hold_is_not_sent_twice() -> None:
    handle = a_handle(problem(503, "unavailable"))
    with pytest.raises(Exception, match="unavailable"):
        handle.hold()
    assert not issubclass(GatewayUnreachable, InvalidInput)


def test_its_text_is_its_id_and_markup_is_escaped() -> None:
    handle = a_handle(name="<script>alert(1)</script>")
    assert str(handle) == handle.id
    assert f"{handle}" == handle.id
    assert "<script>" not in handle._repr_html_()
    assert "&lt;script&gt;" in handle._repr_html_()
