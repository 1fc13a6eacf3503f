"""Queues, cohorts and flavors live alike: each step and each refusal is tried on all three."""

import json
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest

from tests.acceptance.conftest import Served

JSON = {"Content-Type": "application/json"}


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of definition with a change that it takes."""

    noun: str
    mine: dict[str, Any]
    change: dict[str, Any]


KINDS = (
    Kind("queues", {"name": "mine"}, {"weight": 7}),
    Kind("cohorts", {"name": "mine"}, {"weight": 7}),
    Kind("flavors", {"name": "mine", "node_labels": {"gpu": "a"}}, {"node_labels": {"gpu": "b"}}),
)
UNKNOWN = {True: (404, "not_found"), False: (422, "invalid")}
"""A name that the body does not repeat is refused for that, before anything is looked up."""
every_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.noun)


def problem(answer: httpx2.Response, status: int, code: str) -> dict[str, Any]:
    told: dict[str, Any] = answer.json()
    assert (answer.status_code, told["code"]) == (status, code), answer.text
    assert told["hint"]
    return told


@every_kind
def test_one_is_created_read_changed_and_deleted(served: Served, kind: Kind) -> None:
    http = served.http("root")
    made = http.post(f"/{kind.noun}", json=kind.mine)
    at = f"/{kind.noun}/mine"
    assert (made.status_code, made.headers["location"]) == (201, f"/api/v1{at}")
    assert made.headers["etag"] == '"1"'
    assert http.get(at).json() == made.json()
    changed = http.put(at, json={**kind.mine, **kind.change}, headers={"If-Match": '"1"'})
    assert (changed.status_code, changed.headers["etag"]) == (200, '"2"')
    assert kind.change.items() <= changed.json().items()
    names = [item["name"] for item in http.get(f"/{kind.noun}").json()["items"]]
    assert names == sorted(names)
    assert "mine" in names
    gone = http.delete(at, headers={"If-Match": '"2"'})
    assert (gone.status_code, gone.content) == (204, b"")
    problem(http.get(at), 404, "not_found")


@every_kind
def test_a_taken_name_is_a_conflict_and_changes_nothing(served: Served, kind: Kind) -> None:
    http = served.http("root")
    http.post(f"/{kind.noun}", json=kind.mine)
    answer = http.post(f"/{kind.noun}", json={**kind.mine, **kind.change})
    assert (answer.status_code, bool(answer.json()["hint"])) == (409, True)
    assert http.get(f"/{kind.noun}/mine").headers["etag"] == '"1"'


@every_kind
def test_a_condition_that_fails_changes_nothing(served: Served, kind: Kind) -> None:
    http = served.http("root")
    http.post(f"/{kind.noun}", json=kind.mine)
    at, body = f"/{kind.noun}/mine", {**kind.mine, **kind.change}
    for tag in ('"0"', '"2"', '"4611686018427387904"', '"9999999999999999999"'):
        condition = {"If-Match": tag}
        problem(http.put(at, json=body, headers=condition), 412, "stale_version")
        problem(http.delete(at, headers=condition), 412, "stale_version")
    assert http.get(at).headers["etag"] == '"1"'


@every_kind
def test_a_condition_on_a_creation_is_refused_and_not_ignored(shared: Served, kind: Kind) -> None:
    answer = shared.http("root").post(
        f"/{kind.noun}", json={"name": "never"}, headers={"If-Match": '"1"'}
    )
    assert problem(answer, 422, "not_supported_yet")["pointer"] == "/headers/if-match"


@every_kind
@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
@pytest.mark.parametrize("name", ["nobody", "No-Body", "%00", "a%20b", "%C3%A9", "x" * 300])
def test_an_unknown_name_is_not_found_whatever_it_looks_like(
    shared: Served, kind: Kind, method: str, name: str
) -> None:
    http, at = shared.http("root"), f"/{kind.noun}/{name}"
    if method == "PUT":
        told = problem(http.put(at, json={"name": "nobody"}), *UNKNOWN[name == "nobody"])
        assert told.get("pointer", "/name") == "/name"
    else:
        problem(http.request(method, at), 404, "not_found")


@every_kind
def test_users_read_what_admins_change(shared: Served, kind: Kind) -> None:
    http = shared.http("anna")
    assert http.get(f"/{kind.noun}").status_code == 200
    at = f"/{kind.noun}/default"
    answers = [
        http.post(f"/{kind.noun}", json=kind.mine),
        http.put(at, json={"name": "default"}),
        http.delete(at),
    ]
    for answer in answers:
        problem(answer, 403, "denied")


@every_kind
def test_a_body_may_begin_with_a_mark_and_must_be_json(served: Served, kind: Kind) -> None:
    http = served.http("root")
    body = b"\xef\xbb\xbf" + json.dumps(kind.mine).encode()
    assert http.post(f"/{kind.noun}", content=body, headers=JSON).status_code == 201
    yaml = {"Content-Type": "application/yaml"}
    refused = http.post(f"/{kind.noun}", content=b"name: x", headers=yaml)
    assert problem(refused, 415, "unsupported_media_type")["allowed"] == ["application/json"]


@every_kind
@pytest.mark.parametrize(
    ("content", "status", "pointer"),
    [
        (b"", 400, None),
        (b"{", 400, None),
        (b'{"name": "a", "name": "b"}', 400, None),
        (b"[]", 422, None),
        (b"{}", 422, "/name"),
        (b'{"name": "UPPER"}', 422, "/name"),
        (b'{"name": "a\\u0000"}', 422, "/name"),
        (b'{"name": "' + b"x" * 64 + b'"}', 422, "/name"),
        (b'{"name": "a", "version": 1}', 422, "/version"),
    ],
)
def test_a_wrong_body_is_refused_alike_for_creating_and_replacing(
    shared: Served, kind: Kind, content: bytes, status: int, pointer: str | None
) -> None:
    http, code = shared.http("root"), {400: "malformed", 422: "invalid"}[status]
    for method, path in (("POST", f"/{kind.noun}"), ("PUT", f"/{kind.noun}/default")):
        told = problem(http.request(method, path, content=content, headers=JSON), status, code)
        assert told.get("pointer") == pointer


@every_kind
@pytest.mark.parametrize("query", ["limit=5", "cursor=x", "name=default", "%6eame=x"])
def test_whole_lists_take_no_parameters(shared: Served, kind: Kind, query: str) -> None:
    told = problem(shared.http().get(f"/{kind.noun}?{query}"), 422, "invalid")
    assert told["pointer"] in {"/limit", "/cursor", "/name"}


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"name": "q", "cohort": "nowhere"}, "/cohort"),
        ({"name": "q", "flavors": ["nowhere"]}, "/flavors/0"),
        ({"name": "q", "priority_min": 5, "priority_max": 1}, "/priority_min"),
        ({"name": "q", "namespaces": ["a b"]}, "/namespaces/0"),
        (
            {"name": "q", "quotas": [{"flavor": "default", "resource": "gpu", "nominal": "1x"}]},
            "/quotas/0/nominal",
        ),
    ],
)
def test_a_queue_that_refers_to_nothing_is_refused_with_the_place(
    shared: Served, body: dict[str, Any], pointer: str
) -> None:
    told = problem(shared.http("root").post("/queues", json=body), 422, "invalid")
    assert told["pointer"] == pointer


@pytest.mark.parametrize("verb", ["pause", "resume"])
def test_pausing_twice_is_fine_and_the_version_tells(served: Served, verb: str) -> None:
    http = served.http("root")
    state = {"pause": "paused", "resume": "open"}[verb]
    for _ in range(2):
        answer = http.post(f"/queues/default:{verb}")
        assert (answer.status_code, answer.json()["state"]) == (200, state)
    assert http.get("/queues/default").headers["etag"] == answer.headers["etag"]
    problem(http.post(f"/queues/nowhere:{verb}"), 404, "not_found")
    problem(served.http().post(f"/queues/default:{verb}"), 403, "denied")


@pytest.mark.parametrize("reason", ["broken fan", "ü" * 500])
def test_a_node_is_cordoned_with_its_reason(served: Served, reason: str) -> None:
    http = served.http("root")
    name = http.get("/nodes").json()["items"][0]["name"]
    answer = http.post(f"/nodes/{name}:cordon", json={"reason": reason})
    assert answer.json()["health"] == "cordoned"
    for wrong in (
        {"reason": ""},
        {"reason": "a\0"},
        {"reason": "x" * 501},
        {"reason": 5},
        {"why": ""},
    ):
        told = problem(http.post(f"/nodes/{name}:cordon", json=wrong), 422, "invalid")
        assert told["pointer"] in {"/reason", "/why"}
    assert http.post(f"/nodes/{name}:uncordon").json()["health"] == "healthy"
    problem(
        http.post(f"/nodes/{name}:uncordon", headers={"If-Match": '"1"'}), 422, "not_supported_yet"
    )
