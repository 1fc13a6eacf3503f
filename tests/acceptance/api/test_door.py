"""The door: who comes in, how much they may carry, and that every refusal is a problem document."""

import json
import socket
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from gateway.api.intake import MAX_BATCH_BYTES, MAX_BODY_BYTES
from tests.acceptance.api.bodies import a_manifest
from tests.acceptance.conftest import Served

PROTECTED = (
    *("/jobs", "/queues", "/cohorts", "/flavors", "/nodes", "/devices", "/events", "/whoami"),
    *("/metrics", "/openapi.json", "/definitions", "/no-such-thing"),
)


def problem(answer: httpx2.Response) -> dict[str, Any]:
    assert answer.headers["content-type"] == "application/problem+json", answer.text
    document: dict[str, Any] = answer.json()
    assert document["status"] == answer.status_code
    assert document["request_id"] == answer.headers["x-request-id"]
    assert document["type"] == f"urn:training-gateway:problem:{document['code']}"
    assert document["title"]
    assert document["detail"]
    assert document["hint"]
    return document


@pytest.mark.parametrize(
    "header",
    [None, "", "Bearer", "Bearer wrong", "Basic YW5uYTphbm5h", "anna", "Bearer anna x"],
)
def test_without_a_good_token_nobody_gets_anywhere(shared: Served, header: str | None) -> None:
    http = shared.http()
    del http.headers["authorization"]
    headers = {} if header is None else {"Authorization": header}
    for path in PROTECTED:
        answer = http.get(path, headers=headers)
        assert answer.status_code == 401, path
        assert problem(answer)["code"] == "unauthenticated"
        assert answer.headers["www-authenticate"].startswith("Bearer")


def test_probes_need_no_token(shared: Served) -> None:
    http = httpx2.Client(base_url=shared.url, trust_env=False)
    for path in ("/healthz", "/readyz", "/api/v1/healthz", "/api/v1/readyz"):
        assert http.get(path).json()["status"] == "ok", path
    assert http.get("/metrics").status_code == 401
    http.close()


def test_the_caller_is_told_who_it_is(shared: Served) -> None:
    told = shared.http("ben").get("/whoami").json()
    assert told == {"name": "ben", "role": "user", "namespaces": ["team-b"]}


def test_nobody_becomes_somebody_else_by_a_header(shared: Served) -> None:
    spoofed = {"X-Forwarded-User": "root", "Impersonate-User": "root", "X-Remote-User": "root"}
    assert shared.http("ben", **spoofed).get("/whoami").json()["name"] == "ben"


def test_a_request_keeps_a_harmless_id_of_its_own(shared: Served) -> None:
    http = shared.http()
    mine = http.get("/whoami", headers={"X-Request-ID": "trace-12345678"})
    assert mine.headers["x-request-id"] == "trace-12345678"
    for strange in ("short", "x" * 100, "with space", 'quote"quote'):
        answer = http.get("/whoami", headers={"X-Request-ID": strange})
        assert answer.headers["x-request-id"] != strange


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PUT", "/jobs", "GET, POST"),
        ("PATCH", "/jobs/abc", "DELETE, GET"),
        ("GET", "/jobs/abc:cancel", "POST"),
        ("GET", "/jobs:batch", "POST"),
        ("POST", "/queues/default", "DELETE, GET, PUT"),
        ("DELETE", "/queues/default:pause", "POST"),
        ("POST", "/whoami", "GET"),
        ("DELETE", "/devices", "GET"),
    ],
)
def test_a_wrong_method_names_all_right_ones(
    shared: Served, method: str, path: str, allowed: str
) -> None:
    answer = shared.http().request(method, path)
    assert (answer.status_code, answer.headers["allow"]) == (405, allowed)
    assert problem(answer)["allowed"] == allowed.split(", ")


@pytest.mark.parametrize("path", ["/nothing", "/jobs/", "/jobs/a/b/c", "/jobs/abc:fly", "/../x"])
def test_an_unknown_address_is_not_found(shared: Served, path: str) -> None:
    answer = shared.http().post(path)
    assert answer.status_code == 404
    assert problem(answer)["code"] == "not_found"


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/budgets"),
        ("DELETE", "/reservations/x"),
        ("POST", "/jobs/abc:preempt"),
        ("POST", "/queues/default:drain"),
        ("GET", "/usage"),
        ("GET", "/history"),
        ("POST", "/devices"),
        ("PUT", "/devices/1"),
    ],
)
def test_what_is_not_built_yet_says_so(shared: Served, method: str, path: str) -> None:
    document = problem(shared.http("root").request(method, path))
    assert (document["status"], document["code"]) == (422, "not_supported_yet")
    assert document["pointer"]


def test_an_announced_body_beyond_the_limit_is_refused(shared: Served) -> None:
    http = shared.http(**{"Content-Type": "application/json"})
    answer = http.post("/jobs", content=b" " * (MAX_BODY_BYTES + 1))
    assert answer.status_code == 413
    assert problem(answer)["code"] == "too_large"
    assert http.post("/jobs", content=b" " * MAX_BODY_BYTES).status_code == 400
    assert http.post("/jobs:batch", content=b" " * (MAX_BODY_BYTES + 1)).status_code == 400
    assert http.post("/jobs:batch", content=b" " * (MAX_BATCH_BYTES + 1)).status_code == 413


def test_a_chunked_body_is_counted_as_it_comes(shared: Served) -> None:
    def chunks() -> Iterator[bytes]:
        for _ in range(MAX_BODY_BYTES // 8192 + 1):
            yield b" " * 8192

    http = shared.http(**{"Content-Type": "application/json"})
    assert problem(http.post("/jobs", content=chunks()))["code"] == "too_large"


def test_a_body_without_end_is_cut_off(shared: Served) -> None:
    place = httpx2.URL(shared.url)
    head = "POST /api/v1/jobs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer anna\r\n"
    head += "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    sent = 0
    with socket.create_connection((place.host, place.port or 0), timeout=20) as connection:
        connection.sendall(head.encode())
        try:
            while sent < 100 * 1024 * 1024:
                connection.sendall(b"100000\r\n" + b" " * 0x100000 + b"\r\n")
                sent += 0x100000
        except OSError:
            pass
    assert sent < 100 * 1024 * 1024
    assert shared.http().get("/whoami").status_code == 200


def test_a_stranger_is_refused_before_the_body_is_read(shared: Served) -> None:
    place = httpx2.URL(shared.url)
    head = b"POST /api/v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n"
    with socket.create_connection((place.host, place.port or 0), timeout=20) as connection:
        connection.sendall(head)
        assert connection.recv(100).startswith(b"HTTP/1.1 401")


@pytest.mark.parametrize(
    "content_type", ["text/plain", "application/xml", "multipart/form-data", "", "application/jso"]
)
def test_a_body_of_another_type_is_refused(shared: Served, content_type: str) -> None:
    body, headers = json.dumps(a_manifest()).encode(), {"Content-Type": content_type}
    answer = shared.http().post("/jobs", content=body, headers=headers)
    assert answer.status_code == 415
    assert "application/json" in problem(answer)["allowed"]
    queue = shared.http("root").post("/queues", content=b"name: x", headers=headers)
    assert queue.status_code == 415


def test_a_compressed_body_is_refused(shared: Served) -> None:
    answer = shared.http(**{"Content-Encoding": "gzip"}).post("/jobs", content=b"\x1f\x8b")
    assert problem(answer)["code"] == "unsupported_media_type"


@pytest.mark.parametrize(
    "path",
    [
        "/whoami?x=1",
        "/jobs?limit=501",
        "/jobs?limit=0",
        "/jobs?sate=x",
        "/jobs?label=x",
        "/queues?limit=5",
    ],
)
def test_an_unknown_or_wrong_query_parameter_is_refused(shared: Served, path: str) -> None:
    assert problem(shared.http().get(path))["code"] == "invalid"


def test_a_body_where_none_belongs_is_refused(shared: Served) -> None:
    answer = shared.http().request("GET", "/jobs", json={"state": "running"})
    assert problem(answer)["pointer"] == "/state"


def test_a_condition_is_never_ignored(served: Served) -> None:
    http = served.http()
    job = http.post("/jobs", json=a_manifest()).json()
    at, version = f"/jobs/{job['id']}", job["version"]
    for method, path in (("DELETE", at), ("POST", f"{at}:hold"), ("POST", f"{at}:cancel")):
        answer = http.request(method, path, headers={"If-Match": f'"{version + 6}"'})
        assert answer.status_code == 412
        assert problem(answer)["code"] == "stale_version"
    assert http.get(at).json()["state"] == "pending"
    held = http.post(f"{at}:hold", headers={"If-Match": f'"{version}"'})
    assert held.headers["etag"] == f'"{version + 1}"'
    pause = served.http("root").post("/queues/default:pause", headers={"If-Match": '"1"'})
    assert problem(pause)["pointer"] == "/headers/if-match"
