"""Jobs over REST: submitted once, listed, changed, and invisible to other tenants."""

import json
import threading
from typing import Any

import httpx2
import pytest
import yaml

from tests.acceptance.api.bodies import a_manifest
from tests.acceptance.conftest import Served

UNKNOWN = "11111111-2222-3333-4444-555555555555"


def submit(http: httpx2.Client, name: str = "train", **changes: Any) -> dict[str, Any]:
    answer = http.post("/jobs", json=a_manifest(name, **changes))
    assert answer.status_code == 201, answer.text
    job: dict[str, Any] = answer.json()
    return job


def test_a_job_is_created_and_found_again(served: Served) -> None:
    http = served.http()
    answer = http.post("/jobs", json=a_manifest("train", gpu=2, workers=3))
    job = answer.json()
    assert answer.status_code == 201
    assert answer.headers["location"] == f"/api/v1/jobs/{job['id']}"
    assert answer.headers["etag"] == '"1"'
    assert (job["state"], job["pods"], job["gpus"], job["rdma"]) == ("pending", 4, 8, 8)
    assert (job["user"], job["queue"], job["namespace"]) == ("anna", "default", "team-a")

    found = http.get(f"/jobs/{job['id']}")
    assert found.json()["spec"]["manifest"]["metadata"]["name"] == "train"
    assert found.headers["etag"] == '"1"'


def test_yaml_json_and_envelope_give_the_same_job(served: Served) -> None:
    http, digests = served.http(), set()
    text = yaml.safe_dump(a_manifest()).encode()
    bodies: list[dict[str, Any]] = [
        {"json": a_manifest()},
        {"json": {"manifest": a_manifest()}},
        {"content": text, "headers": {"Content-Type": "application/yaml"}},
        {"content": text, "headers": {"Content-Type": "text/yaml; charset=utf-8"}},
    ]
    for body in bodies:
        answer = http.post("/jobs", params={"dry_run": "plan"}, **body)
        assert answer.status_code == 200, answer.text
        digests.add(json.dumps(answer.json(), sort_keys=True))
    assert len(digests) == 1
    assert http.get("/jobs").json()["items"] == []


@pytest.mark.parametrize("where", ["query", "envelope"])
def test_overrides_win_over_the_manifest(served: Served, where: str) -> None:
    wishes: dict[str, Any] = {"name": "other", "priority": 7, "hold": True, "queue": "default"}
    body: dict[str, Any] = {"json": a_manifest()}
    if where == "envelope":
        body = {"json": {"manifest": a_manifest(), "overrides": wishes}}
    params: dict[str, Any] = wishes if where == "query" else {}
    job = served.http().post("/jobs", params=params, **body).json()
    assert (job["name"], job["priority"], job["state"]) == ("other", 7, "held")


def test_the_same_key_gives_the_same_job_and_another_body_is_refused(served: Served) -> None:
    http = served.http(**{"Idempotency-Key": "key-1"})
    first = http.post("/jobs", json=a_manifest())
    again = http.post("/jobs", json=a_manifest())
    other = http.post("/jobs", json=a_manifest("other"))
    assert (first.status_code, again.status_code, other.status_code) == (201, 200, 422)
    assert first.json()["id"] == again.json()["id"]
    assert other.json()["code"] == "idempotency_key_reused"
    assert len(http.get("/jobs").json()["items"]) == 1


def test_a_storm_of_one_key_makes_one_job(served: Served) -> None:
    answers: list[httpx2.Response] = []

    def send() -> None:
        http = served.http(**{"Idempotency-Key": "storm"})
        answers.extend(http.post("/jobs", json=a_manifest()) for _ in range(5))

    threads = [threading.Thread(target=send) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answer.status_code for answer in answers) == [200] * 39 + [201]
    assert len({answer.json()["id"] for answer in answers}) == 1


def test_one_name_lives_once_in_a_namespace_and_again_after_its_end(served: Served) -> None:
    http = served.http()
    job = submit(http)
    taken = http.post("/jobs", json=a_manifest())
    assert (taken.status_code, taken.json()["code"]) == (409, "name_taken")
    assert taken.json()["pointer"] == "/metadata/name"

    ben = served.http("ben").post("/jobs", params={"namespace": "team-b"}, json=a_manifest())
    assert ben.status_code == 201
    for _ in range(3):
        assert http.post(f"/jobs/{job['id']}:cancel").json()["state"] == "cancelled"
        job = submit(http)


def test_verbs_change_what_they_may_and_refuse_the_rest(served: Served) -> None:
    http = served.http()
    at = f"/jobs/{submit(http)['id']}"
    assert http.post(f"{at}:hold").json()["reason"] == "Held"
    conflict = http.post(f"{at}:hold")
    assert (conflict.status_code, conflict.json()["code"]) == (409, "invalid_transition")
    assert http.post(f"{at}:release", json={}).json()["state"] == "pending"
    assert http.post(f"{at}:reprioritise", json={"priority": 9}).json()["priority"] == 9
    assert http.delete(at).json()["state"] == "cancelled"
    assert http.post(f"{at}:cancel").status_code == 200
    ended = http.post(f"{at}:requeue")
    assert ended.status_code == 409
    assert "--from" in ended.json()["hint"]


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({}, "/priority"),
        ({"priority": "9"}, "/priority"),
        ({"priority": 9.5}, "/priority"),
        ({"priority": 10**12}, "/priority"),
        ({"priority": 1, "state": "running"}, "/state"),
    ],
)
def test_a_wrong_priority_is_refused(served: Served, body: Any, pointer: str) -> None:
    http = served.http()
    refused = http.post(f"/jobs/{submit(http)['id']}:reprioritise", json=body)
    assert (refused.status_code, refused.json()["pointer"]) == (422, pointer)


def test_lists_are_paged_and_filtered(served: Served) -> None:
    http = served.http()
    names = [submit(http, f"job-{number}", gpu=1)["name"] for number in range(5)]
    first = http.get("/jobs", params={"limit": 2}).json()
    second = http.get("/jobs", params={"limit": 2, "cursor": first["next_cursor"]}).json()
    third = http.get("/jobs", params={"limit": 2, "cursor": second["next_cursor"]}).json()
    listed = [job["name"] for page in (first, second, third) for job in page["items"]]
    assert listed == names[::-1]
    assert third["next_cursor"] == ""

    def found(**params: Any) -> int:
        return len(http.get("/jobs", params=params).json()["items"])

    assert found(state="pending,held") == 5
    assert found(state="running") == found(queue="other") == found(user="ben") == 0
    assert found(name="job-3") == 1
    assert found(label="team=vision") == 0
    assert found(label="team=vision,stage=a") == 0
    assert found(since="2020-01-01T00:00:00Z") == 5
    assert found(since="2100-01-01T00:00:00+02:00") == 0


def test_a_cursor_is_good_for_its_own_list_only(served: Served) -> None:
    http = served.http()
    for number in range(3):
        submit(http, f"job-{number}", gpu=1)
    cursor = http.get("/jobs", params={"limit": 1}).json()["next_cursor"]
    tries: list[dict[str, Any]] = [
        {"cursor": cursor[:-2] + "AA"},
        {"cursor": cursor, "queue": "default"},
        {"cursor": "2"},
        {"cursor": "' OR 1=1 --"},
    ]
    for params in tries:
        refused = http.get("/jobs", params=params)
        assert (refused.status_code, refused.json()["pointer"]) == (422, "/cursor")
    assert served.http("root").get("/jobs", params={"cursor": cursor}).status_code == 422


def test_a_story_is_told_from_submit_to_end(served: Served) -> None:
    http = served.http()
    at = f"/jobs/{submit(http, gpu=2, workers=1)['id']}"
    assert http.get(f"{at}/explain").json()["reason"] == "NotReached"
    assert http.get(f"{at}/assignments").json()["items"] == []
    served.world.turn()
    places = http.get(f"{at}/assignments").json()["items"]
    assert [place["rank"] for place in places] == [0, 1]
    assert len(places[0]["devices"]) == 4
    assert http.get(f"{at}/assignments", params={"attempt": 2}).json()["items"] == []
    assert http.get(f"{at}/attempts").json()["items"][0]["number"] == 1
    kinds = [event["kind"] for event in http.get(f"{at}/events").json()["items"]]
    assert kinds[:2] == ["submitted", "reserved"]
    page = http.get(f"{at}/events", params={"limit": 1}).json()
    rest = http.get(f"{at}/events", params={"cursor": page["next_cursor"]}).json()
    assert [event["kind"] for event in page["items"] + rest["items"]] == kinds


def test_another_tenants_job_is_as_unknown_as_none(served: Served) -> None:
    job_id = submit(served.http())["id"]
    ben = served.http("ben")
    paths = ["", "/explain", "/events", "/attempts", "/assignments", "/logs"]
    calls = [("GET", path) for path in paths]
    calls += [("POST", f":{verb}") for verb in ("cancel", "hold", "release", "requeue")]
    calls += [("DELETE", "")]
    for method, path in calls:
        theirs = ben.request(method, f"/jobs/{job_id}{path}")
        nobodys = ben.request(method, f"/jobs/{UNKNOWN}{path}")
        assert theirs.status_code == nobodys.status_code == 404, path
        same = [answer.json() for answer in (theirs, nobodys)]
        for document, asked in zip(same, (job_id, UNKNOWN), strict=True):
            del document["request_id"]
            document["detail"] = document["detail"].replace(asked, "ID")
        assert same[0] == same[1], path
    priority = ben.post(f"/jobs/{job_id}:reprioritise", json={"priority": 1})
    assert priority.status_code == 404
    assert ben.get("/jobs").json()["items"] == []
    assert ben.get("/jobs", params={"namespace": "team-a"}).json()["items"] == []
    assert job_id not in ben.get("/events", headers={"Accept": "application/json"}).text


def test_another_namespace_is_not_submitted_to(served: Served) -> None:
    refused = served.http("ben").post("/jobs", json=a_manifest())
    assert (refused.status_code, refused.json()["code"]) == (403, "denied")
    assert refused.json()["allowed"] == ["team-b"]
