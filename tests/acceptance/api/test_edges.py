"""The edges of the surface: methods nobody uses, probes without a database, exact filters."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest

from gateway.core.vocabulary import JobState
from gateway.db.engine import open_database
from gateway.errors import NotFound
from tests.acceptance.api.bodies import a_manifest
from tests.acceptance.conftest import Served, serving_copy

EVERY_METHOD = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
PLANNED = (
    *("/usage", "/history", "/audit", "/budgets", "/budgets/x", "/reservations"),
    *("/queues/x:drain", "/nodes/x:drain"),
)


@pytest.mark.parametrize("path", PLANNED)
def test_what_is_planned_says_so_to_every_method(shared: Served, path: str) -> None:
    http = shared.http("root")
    for method in EVERY_METHOD:
        answer = http.request(method, path)
        assert answer.status_code == 422, (method, path)
        if method != "HEAD":
            assert answer.json()["code"] == "not_supported_yet"
            assert path in answer.json()["detail"]


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("POST", "/openapi.json", "GET, HEAD"),
        ("DELETE", "/openapi.json", "GET, HEAD"),
        ("OPTIONS", "/jobs", "GET, POST"),
        ("HEAD", "/jobs", "GET, POST"),
        ("PATCH", "/queues/x", "DELETE, GET, PUT"),
        ("POST", "/healthz", "GET"),
    ],
)
def test_no_refusal_of_a_method_is_without_the_right_ones(
    shared: Served, method: str, path: str, allowed: str
) -> None:
    answer = shared.http("root").request(method, path)
    assert (answer.status_code, answer.headers["allow"]) == (405, allowed)
    if method != "HEAD":
        assert answer.json()["hint"] == f"use {' or '.join(allowed.split(', '))}"
        assert answer.json()["value"] == method


def test_without_a_database_the_process_is_alive_not_ready_and_recovers(served: Served) -> None:
    here = served.world.gateway.database
    away = open_database("postgresql://127.0.0.1:1/nothing?connect_timeout=1")
    http, probe = served.http(), httpx2.Client(base_url=served.url, trust_env=False)
    served.world.gateway.database = away
    assert probe.get("/healthz").json()["status"] == "ok"
    told = probe.get("/readyz")
    assert (told.status_code, told.json()["status"]) == (503, "unavailable")
    assert told.json()["checks"]["database"] != "ok"
    for answer in (http.get("/jobs"), http.get("/metrics"), http.post("/jobs", json=a_manifest())):
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
        assert answer.json()["code"] == "database_unavailable"
    served.world.gateway.database = here
    assert probe.get("/readyz").json()["checks"]["database"] == "ok"
    assert http.post("/jobs", json=a_manifest()).status_code == 201
    probe.close()
    away.close()


Submitted = tuple[Served, list[dict[str, Any]]]


@pytest.fixture(scope="module")
def submitted(
    sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Submitted]:
    """Give a server of its own with three jobs, a second and a microsecond apart."""
    with serving_copy(sqlite_template, tmp_path_factory.mktemp("edges")) as running:
        client, jobs = running.sdk(), []
        for number, seconds in enumerate((0.0, 1.0, 0.000_001)):
            running.world.clock.advance(seconds)
            manifest = a_manifest(f"job-{number}", gpu=1)
            even = str(number % 2 == 0).lower()
            manifest["metadata"]["labels"] = {"n": str(number), "even": even}
            client.submit(manifest, hold=number == 2)
            jobs.append(running.http().get("/jobs").json()["items"][0])
        yield running, jobs


def names(served: Served, **params: str) -> list[str]:
    answer = served.http().get("/jobs", params=params)
    assert answer.status_code == 200, answer.text
    return [job["name"] for job in answer.json()["items"]]


def test_since_takes_the_instant_that_a_job_shows(
    submitted: Submitted,
) -> None:
    served, jobs = submitted
    for number, job in enumerate(jobs):
        at = datetime.fromisoformat(job["submitted_at"])
        newer = [f"job-{later}" for later in (2, 1, 0) if later >= number]
        assert names(served, since=job["submitted_at"]) == newer
        after = (at + timedelta(microseconds=1)).isoformat()
        assert f"job-{number}" not in names(served, since=after)
        elsewhere = job["submitted_at"].replace("Z", "+00:00")
        assert names(served, since=elsewhere) == newer


@pytest.mark.parametrize(
    ("params", "found"),
    [
        ({}, ["job-2", "job-1", "job-0"]),
        ({"label": "even=true"}, ["job-2", "job-0"]),
        ({"label": "even=true,n=0"}, ["job-0"]),
        ({"label": "even=true,n=1"}, []),
        ({"label": "n="}, []),
        ({"label": ""}, ["job-2", "job-1", "job-0"]),
        ({"state": "held"}, ["job-2"]),
        ({"state": "held,pending"}, ["job-2", "job-1", "job-0"]),
        ({"state": ""}, ["job-2", "job-1", "job-0"]),
        ({"reason": "Held"}, ["job-2"]),
        ({"name": "job-1"}, ["job-1"]),
        ({"name": "job"}, []),
        ({"queue": "default", "user": "anna"}, ["job-2", "job-1", "job-0"]),
        ({"user": "ben"}, []),
        ({"namespace": "team-b"}, []),
        ({"state": "running"}, []),
    ],
)
def test_each_filter_leaves_what_it_says(
    submitted: Submitted, params: dict[str, str], found: list[str]
) -> None:
    served, _ = submitted
    assert names(served, **params) == found
    page: list[str] = []
    cursor = ""
    for _ in range(len(found) + 1):
        asked = {**params, "limit": "1", **({"cursor": cursor} if cursor else {})}
        told = served.http().get("/jobs", params=asked).json()
        page += [job["name"] for job in told["items"]]
        cursor = told["next_cursor"]
        if not cursor:
            break
    assert page == found


@pytest.mark.parametrize(
    ("query", "pointer"),
    [
        ("state=Pending", "/state/0"),
        ("state=pending,done", "/state/1"),
        ("reason=held", "/reason"),
        ("since=2026-01-01", "/since"),
        ("since=2026-01-01T00:00:00", "/since"),
        ("label=even", "/label"),
        ("label==true", "/label"),
        ("name=%00", "/name"),
        ("queue=a&queue=b", "/queue"),
        ("limit=0", "/limit"),
        ("cursor=" + "x" * 401, "/cursor"),
        ("cursor=abcd", "/cursor"),
    ],
)
def test_a_wrong_filter_is_refused_with_its_name(shared: Served, query: str, pointer: str) -> None:
    answer = shared.http().get(f"/jobs?{query}")
    assert (answer.status_code, answer.json()["pointer"]) == (422, pointer), answer.text
    assert answer.json()["hint"]


def test_an_attempt_that_never_was_has_no_lines_and_no_places(served: Served) -> None:
    job = served.sdk().submit(a_manifest(gpu=1))
    served.world.until(job.id, JobState.RUNNING)
    http = served.http()
    assert len(http.get(f"/jobs/{job.id}/assignments").json()["items"]) == 1
    assert http.get(f"/jobs/{job.id}/assignments?attempt=9").json()["items"] == []
    assert http.get(f"/jobs/{job.id}/logs?attempt=9").status_code == 404
    with pytest.raises(NotFound):
        list(job.logs(attempt=9))
    for wrong in ("attempt=0", "attempt=x", "attempt=9999999999", "rank=-1"):
        assert http.get(f"/jobs/{job.id}/logs?{wrong}").status_code == 422
