"""What goes wrong behind a route answers as one kind of document, and tells nothing it must not."""

import json
import logging
from typing import Any

import anyio
import httpx2
import pytest
from fastapi import FastAPI
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.exceptions import HTTPException

from gateway.api import problems
from gateway.api.answers import answer, items, nothing
from gateway.api.app import documented_app
from gateway.api.intake_ids import REQUEST_ID
from gateway.api.plain_route import PlainRoute
from gateway.api.problems import methods_of, problem_response
from gateway.errors import (
    Conflict,
    DatabaseUnavailable,
    GatewayError,
    InvalidInput,
    NotFound,
    Overloaded,
    StaleLeader,
    StaleVersion,
    Unauthenticated,
)
from gateway.schemas.definitions import CohortPage, CohortView
from gateway.schemas.views import WhoAmI

SECRET = "postgresql://user:hunter2@db/jobs"


def asked(
    raised: Exception, method: str = "GET", path: str = "/x", **headers: str
) -> httpx2.Response:
    """Ask an application with one route, which raises this."""
    app = FastAPI(openapi_url=None)
    problems.register(app)
    app.router.route_class = PlainRoute

    def fail(**_parts: object) -> None:
        raise raised

    app.add_api_route("/x", fail, methods=["GET", "PUT"])

    async def named(scope: Any, receive: Any, send: Any) -> None:
        scope[REQUEST_ID] = "request-1"
        await app(scope, receive, send)

    async def ask() -> httpx2.Response:
        transport = httpx2.ASGITransport(named, raise_app_exceptions=False)
        async with httpx2.AsyncClient(transport=transport, base_url="http://x") as client:
            return await client.request(method, path, headers=headers)

    return anyio.run(ask)


@pytest.mark.parametrize(
    ("error", "headers", "status"),
    [
        (InvalidInput("wrong"), {}, 422),
        (NotFound("gone"), {}, 404),
        (Conflict("busy"), {"If-Match": '"1"'}, 409),
        (StaleVersion("old"), {}, 409),
        (StaleVersion("old"), {"If-Match": '"1"'}, 412),
        (DatabaseUnavailable("away"), {"If-Match": '"1"'}, 503),
        (StaleLeader("epoch 1"), {}, 503),
    ],
)
def test_an_error_of_a_route_answers_with_its_status_and_code(
    error: GatewayError, headers: dict[str, str], status: int
) -> None:
    found = asked(error, **headers)
    told = found.json()
    assert (found.status_code, told["status"], told["code"]) == (status, status, error.code)
    assert (told["detail"], told["request_id"]) == (error.detail, "request-1")
    assert found.headers["x-request-id"] == "request-1"
    assert found.headers["cache-control"] == "no-store"
    assert found.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("error", [ValueError(SECRET), KeyError("x"), RuntimeError(SECRET)])
def test_a_defect_is_told_by_request_id_and_without_its_words(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR, logger="gateway.api.problems"):
        found = asked(error)
    told = found.json()
    assert (found.status_code, told["code"]) == (500, "internal")
    assert told["hint"] == "look for request request-1 in the server's log"
    assert "hunter2" not in found.text
    ours = [record for record in caplog.records if record.name == "gateway.api.problems"]
    assert [record.getMessage() for record in ours] == [
        f"request request-1 failed with {type(error).__name__}"
    ]


@pytest.mark.parametrize("status", [400, 404, 418])
def test_what_http_itself_refuses_is_nothing_here(status: int) -> None:
    found = asked(HTTPException(status))
    assert (found.status_code, found.json()["code"]) == (404, "not_found")
    assert "/api/v1/openapi.json" in found.json()["hint"]


def test_a_path_of_any_length_is_cut_short_in_the_answer() -> None:
    found = asked(NotFound("x"), path="/" + "y" * 5000)
    assert found.status_code == 404
    assert len(found.json()["detail"]) < 250


@pytest.mark.parametrize(
    ("error", "header", "value"),
    [
        (Unauthenticated("who?"), "www-authenticate", 'Bearer realm="training-gateway"'),
        (Overloaded("later"), "retry-after", "1"),
        (DatabaseUnavailable("later"), "retry-after", "1"),
        (InvalidInput("never"), "retry-after", None),
        (StaleLeader("never"), "www-authenticate", None),
    ],
)
def test_a_client_is_told_by_header_what_it_can_do(
    error: GatewayError, header: str, value: str | None
) -> None:
    assert problem_response(error, "id").headers.get(header) == value


@pytest.mark.parametrize("text", ["a\ud800b", "\udc00", "naïve 🚀", 'quote"\\', "line\nline"])
def test_a_problem_is_always_json_in_utf_8(text: str) -> None:
    body = problem_response(InvalidInput(text, value=text), "id").body
    told = json.loads(bytes(body))
    assert told["detail"] == text.encode(errors="replace").decode()


APP = documented_app()


@pytest.mark.parametrize(
    ("path", "methods"),
    [
        ("/api/v1/jobs", ("GET", "POST")),
        ("/api/v1/jobs/1", ("DELETE", "GET")),
        ("/api/v1/jobs/1:hold", ("POST",)),
        ("/api/v1/jobs:batch", ("POST",)),
        ("/api/v1/queues/a.b-c", ("DELETE", "GET", "PUT")),
        ("/api/v1/queues/x:pause", ("POST",)),
        ("/api/v1/jobs/1/2", ()),
        ("/api/v1/jobs/", ()),
        ("/api/v1/jobs/1:fly", ()),
        ("/api/v1/jobsx", ()),
        ("", ()),
    ],
)
def test_the_methods_of_a_path_are_those_of_all_its_routes(
    path: str, methods: tuple[str, ...]
) -> None:
    assert methods_of(APP, path) == methods


@settings(deadline=None, max_examples=50)
@given(st.text("/:ab{}.*+?^$[]()\\|", max_size=30))
def test_no_path_confuses_the_search_for_its_methods(path: str) -> None:
    assert set(methods_of(APP, "/api/v1" + path)) <= {"GET", "PUT", "POST", "DELETE", "PATCH"}


COHORTS = st.builds(
    CohortView, name=st.from_regex(r"[a-z]{1,5}", fullmatch=True), version=st.just(1)
)


@settings(deadline=None, max_examples=50)
@given(st.lists(COHORTS, max_size=4))
def test_a_page_written_by_hand_is_the_one_that_its_model_reads(views: list[CohortView]) -> None:
    body = items(views).body
    assert CohortPage.model_validate_json(bytes(body)) == CohortPage(items=tuple(views))
    assert json.loads(bytes(body))["next_cursor"] == ""


@pytest.mark.parametrize(("version", "tag"), [(None, None), (0, '"0"'), (7, '"7"')])
def test_an_answer_carries_its_version_as_a_strong_tag(
    version: int | None, tag: str | None
) -> None:
    found = answer(WhoAmI(name="anna", role="user", namespaces=()), status=201, version=version)
    assert (found.status_code, found.headers.get("etag")) == (201, tag)
    assert found.headers["content-type"] == "application/json"
    assert json.loads(bytes(found.body))["name"] == "anna"
    assert (nothing().status_code, nothing().body) == (204, b"")


def test_every_route_of_jobs_gets_its_path_parts_and_nothing_else() -> None:
    seen: list[dict[str, Any]] = []
    app = FastAPI(openapi_url=None)
    app.router.route_class = PlainRoute

    def show(**parts: Any) -> Any:
        seen.append(parts)
        return nothing()

    app.add_api_route("/{first}/{second}", show)

    async def ask() -> int:
        transport = httpx2.ASGITransport(app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://x") as client:
            return (await client.get("/a/b%20c")).status_code

    assert anyio.run(ask) == 204
    (parts,) = seen
    assert parts.pop("request").url.path == "/a/b c"
    assert parts == {"first": "a", "second": "b c"}
