"""Log lines, events and figures as they come out of a running server."""

import json
import re
import threading
import time
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from gateway.api import streaming
from gateway.api.metrics import KEEP_SECONDS
from gateway.backends.base import Launch
from gateway.core.vocabulary import JobState
from gateway.errors import NotFound
from tests.acceptance.api.bodies import a_manifest
from tests.acceptance.conftest import Served


def running_job(served: Served, **script: Any) -> str:
    job = served.sdk().submit(a_manifest(gpu=1, **script))
    served.world.until(job.id, JobState.RUNNING)
    return job.id


def test_lines_of_a_rank_come_as_text(served: Served) -> None:
    job_id = running_job(served)
    answer = served.http().get(f"/jobs/{job_id}/logs")
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    lines = answer.text.splitlines()
    assert lines
    assert list(served.sdk().jobs.get(job_id).logs()) == lines
    rest = served.http().get(f"/jobs/{job_id}/logs", params={"skip": 1}).text.splitlines()
    assert rest == lines[1:]
    last = served.http().get(f"/jobs/{job_id}/logs", params={"tail": 1}).text.splitlines()
    assert last == lines[-1:]


def test_lines_are_kept_after_the_end(served: Served) -> None:
    job_id = running_job(served)
    served.world.until(job_id, JobState.SUCCEEDED)
    handle = served.sdk().jobs.get(job_id)
    assert list(handle.logs(follow=True)) == list(handle.logs())
    with pytest.raises(NotFound):
        list(handle.logs(rank=7))


@pytest.mark.parametrize(
    "params", [{"rank": -1}, {"rank": "x"}, {"tail": 0}, {"tail": 1, "skip": 1}, {"follow": "?"}]
)
def test_a_wrong_choice_of_lines_is_refused(shared: Served, params: dict[str, Any]) -> None:
    assert shared.http().get("/jobs/x/logs", params=params).status_code == 422


def test_a_job_that_waits_has_no_lines_and_says_why(served: Served) -> None:
    job = served.sdk().submit(a_manifest(), hold=True)
    answer = served.http().get(f"/jobs/{job.id}/logs")
    assert answer.status_code == 404
    assert "explain" in answer.json()["hint"]


def test_followed_lines_come_before_the_job_has_ended(served: Served) -> None:
    """A line that is there is seen while the rank still runs."""
    go_on = threading.Event()

    def logs(_launch: Launch, rank: int, *, follow: bool, tail: int | None) -> Iterator[str]:
        yield f"rank {rank} begins"
        assert go_on.wait(10)
        yield "and ends"

    job_id = running_job(served)
    served.world.cluster.logs = logs  # type: ignore[assignment, method-assign]  # own lines
    params = {"follow": "true"}
    with served.http().stream("GET", f"/jobs/{job_id}/logs", params=params) as answer:
        lines = answer.iter_lines()
        assert next(lines) == "rank 0 begins"
        go_on.set()
        assert next(lines) == "and ends"


def test_followers_that_leave_give_their_places_back(served: Served) -> None:
    speak = threading.Event()

    def logs(_launch: Launch, _rank: int, *, follow: bool, tail: int | None) -> Iterator[str]:
        yield "one"
        assert speak.wait(20)
        yield "two"

    job_id = running_job(served)
    served.world.cluster.logs = logs  # type: ignore[assignment, method-assign]  # own lines
    free = streaming._slots._value
    for _ in range(5):
        params = {"follow": "true"}
        with served.http().stream("GET", f"/jobs/{job_id}/logs", params=params) as answer:
            assert next(answer.iter_lines()) == "one"
    assert served.http().get("/whoami").status_code == 200
    speak.set()
    deadline = time.monotonic() + 10
    while streaming._slots._value < free and time.monotonic() < deadline:
        time.sleep(0.01)
    assert streaming._slots._value == free


def read_events(answer: httpx2.Response, count: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for line in answer.iter_lines():
        if line.startswith("data: "):
            found.append(json.loads(line.removeprefix("data: ")))
        if len(found) == count:
            break
    return found


def test_events_are_streamed_and_resumed_from_the_last_id(served: Served) -> None:
    served.sdk().submit(a_manifest())
    served.sdk("ben").submit(a_manifest(), namespace="team-b")
    stream = {"Accept": "text/event-stream"}
    with served.http().stream("GET", "/events", headers=stream) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        (first,) = read_events(answer, 1)
    assert first["kind"] == "submitted"
    served.world.turn()
    resumed = {**stream, "Last-Event-ID": str(first["id"])}
    with served.http().stream("GET", "/events", headers=resumed) as answer:
        later = read_events(answer, 2)
    assert {event["kind"] for event in later} <= {"reserved", "launching"}
    assert all(event["job_id"] == first["job_id"] for event in later)
    assert next(served.sdk().events(follow=True, after_id=first["id"])).id == later[0]["id"]


@pytest.mark.parametrize("last", ["x", "-1", "1e9", "9" * 40])
def test_a_wrong_last_event_id_is_refused(shared: Served, last: str) -> None:
    headers = {"Accept": "text/event-stream", "Last-Event-ID": last}
    assert shared.http().get("/events", headers=headers).status_code == 422


def test_events_come_in_pages_too(served: Served) -> None:
    job = served.sdk().submit(a_manifest())
    served.world.until(job.id, JobState.SUCCEEDED)
    mine = [event.id for event in job.events()]
    assert [event.id for event in served.sdk().events()] == mine
    everything = [event.id for event in served.sdk("root").events()]
    assert set(mine) <= set(everything)
    assert not list(served.sdk("ben").events())


def test_figures_tell_what_the_database_holds(served: Served) -> None:
    served.sdk().submit(a_manifest("one", gpu=8))
    served.sdk().submit(a_manifest("two", gpu=8), hold=True)
    served.world.turn()
    text = served.http().get("/metrics").text
    figures = dict(re.findall(r"^training_gateway_(\S+) (\S+)$", text, re.MULTILINE))
    assert figures['jobs{queue="default",state="launching"}'] == "1.0"
    assert figures['unadmitted{queue="default",reason="Held"}'] == "1.0"
    assert figures['devices{kind="gpu",state="held"}'] == "8.0"
    assert figures['devices{kind="rdma",state="free"}'] == "8.0"
    assert figures["submitted_jobs_total"] == "2.0"
    assert figures["leader_epoch"] == "1.0"
    assert figures['resource_usage{flavor="default",queue="default",resource="gpu"}'] == "8.0"
    assert "anna" not in text
    assert KEEP_SECONDS <= 2


def test_figures_speak_openmetrics_when_asked(shared: Served) -> None:
    accept = {"Accept": "application/openmetrics-text; version=1.0.0"}
    answer = shared.http().get("/metrics", headers=accept)
    assert answer.headers["content-type"].startswith("application/openmetrics-text")
    assert answer.text.endswith("# EOF\n")
