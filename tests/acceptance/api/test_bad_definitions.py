"""Bad definitions over REST: refused with place and hint, and nothing has changed."""

from typing import Any

import pytest

from tests.acceptance.api.bodies import a_manifest
from tests.acceptance.conftest import Served

NEW_YEAR = "2030-01-01T00:00:00Z"
CHANGE = {"at": NEW_YEAR, "flavor": "default", "resource": "gpu", "nominal": 8}
QUOTA = {"flavor": "default", "resource": "gpu", "nominal": 8}


def a_queue(**fields: Any) -> dict[str, Any]:
    """Give a queue below the cohort `lab`."""
    return {"name": "research", "cohort": "lab", **fields}


BAD: tuple[tuple[str, dict[str, Any], str], ...] = (
    ("queues", a_queue(quotas=[{**QUOTA, "nominal": -1}]), "/quotas/0/nominal"),
    ("queues", a_queue(quotas=[{**QUOTA, "lending_limit": 9}]), "/quotas/0/lending_limit"),
    ("queues", a_queue(quotas=[{**QUOTA, "flavor": "h100"}]), "/quotas/0/flavor"),
    ("queues", a_queue(flavors=["h100"]), "/flavors/0"),
    ("queues", a_queue(weight=-1), "/weight"),
    ("queues", a_queue(cohort="nowhere"), "/cohort"),
    ("queues", a_queue(order="lottery"), "/order"),
    ("queues", a_queue(blocking="maybe"), "/blocking"),
    ("queues", a_queue(when_can_borrow="never"), "/when_can_borrow"),
    ("queues", a_queue(ageing={"per_hour": -1}), "/ageing/per_hour"),
    ("queues", a_queue(ageing={"per_hour": 1001, "cap": 5}), "/ageing/per_hour"),
    ("queues", a_queue(ageing={"cap": -1}), "/ageing/cap"),
    ("queues", a_queue(caps={"running_jobs": -1}), "/caps/running_jobs"),
    ("queues", a_queue(caps={"runing_jobs": 1}), "/caps/runing_jobs"),
    ("queues", a_queue(caps={"user_gpus": "8"}), "/caps/user_gpus"),
    ("queues", a_queue(budget={"gpu_hours": 1, "window_days": 0}), "/budget/window_days"),
    ("queues", a_queue(budget={"gpu_hours": 1, "window_seconds": 0}), "/budget/window_seconds"),
    ("queues", a_queue(budget={"gpu_hours": 1}), "/budget/window_days"),
    ("queues", a_queue(budget={"gpu_hours": -1, "window_days": 1}), "/budget/gpu_hours"),
    ("queues", a_queue(changes=[CHANGE, CHANGE]), "/changes/1/at"),
    ("queues", a_queue(changes=[{**CHANGE, "at": "2030-01-01"}]), "/changes/0/at"),
    ("queues", a_queue(changes=[{**CHANGE, "flavor": "h100"}]), "/changes/0/flavor"),
    ("queues", a_queue(changes=[{**CHANGE, "nominal": -8}]), "/changes/0/nominal"),
    ("queues", a_queue(changes=[{**CHANGE, "lending_limit": 9}]), "/changes/0/lending_limit"),
    ("queues", a_queue(priority_classes=["urgent"]), "/priority_classes/0"),
    ("cohorts", {"name": "lab", "parent": "lab-a"}, "/parent"),
    ("cohorts", {"name": "lab", "weight": -1}, "/weight"),
    ("cohorts", {"name": "lab", "changes": [{**CHANGE, "flavor": "h1"}]}, "/changes/0/flavor"),
    ("flavors", {"name": "second", "node_labels": {}}, "/node_labels"),
    ("priority-classes", {"name": "high", "value": 2_000_000_000}, "/value"),
    ("priority-classes", {"name": "High", "value": 1}, "/name"),
)


@pytest.mark.parametrize(("noun", "body", "pointer"), BAD)
def test_a_bad_definition_is_refused_and_changes_nothing(
    served: Served, noun: str, body: dict[str, Any], pointer: str
) -> None:
    http = served.http("root")
    for cohort in ({"name": "lab"}, {"name": "lab-a", "parent": "lab"}):
        assert http.post("/cohorts", json=cohort).status_code == 201
    before = http.get("/definitions").json()
    is_known = noun == "cohorts"
    answer = http.put(f"/{noun}/lab", json=body) if is_known else http.post(f"/{noun}", json=body)
    problem = answer.json()
    assert (answer.status_code, problem["code"]) == (422, "invalid"), answer.text
    assert problem["pointer"] == pointer
    assert problem["hint"]
    document = {"kind": "TrainingGatewayConfig", noun.replace("-", "_"): [body]}
    applied = http.post("/definitions", json=document).json()
    assert applied["pointer"] == f"/{noun.replace('-', '_')}/0{pointer}"
    assert http.get("/definitions").json() == before


def test_what_is_in_use_is_not_deleted_and_stale_edits_do_not_win(served: Served) -> None:
    http = served.http("root")
    http.post("/priority-classes", json={"name": "high", "value": 5})
    body = {"name": "default", "priority_classes": ["high"]}
    assert http.put("/queues/default", json=body, headers={"If-Match": '"1"'}).status_code == 200
    stale = http.put("/queues/default", json=body, headers={"If-Match": '"1"'})
    assert (stale.status_code, stale.json()["code"]) == (412, "stale_version")
    job = a_manifest()
    job["metadata"]["annotations"] = {"training-gateway.io/priority-class": "high"}
    stored = served.http().post("/jobs", json=job)
    assert (stored.status_code, stored.json()["priority_class"]) == (201, "high")
    for path in ("/queues/default", "/priority-classes/high"):
        refused = http.delete(path)
        assert (refused.status_code, refused.json()["code"]) == (409, "conflict")
        assert "1 live job" in refused.json()["detail"]
    assert [item["name"] for item in http.get("/priority-classes").json()["items"]] == ["high"]


def test_a_priority_class_is_created_read_replaced_and_deleted(served: Served) -> None:
    http, sdk = served.http("root"), served.sdk("root")
    created = http.post("/priority-classes", json={"name": "high", "value": 5})
    assert (created.status_code, created.headers["etag"]) == (201, '"1"')
    assert created.headers["location"] == "/api/v1/priority-classes/high"
    body, condition = {"name": "high", "value": 6}, {"If-Match": '"1"'}
    assert http.put("/priority-classes/high", json=body, headers=condition).json()["value"] == 6
    assert http.put("/priority-classes/high", json=body, headers=condition).status_code == 412
    assert http.put("/priority-classes/low", json=body).json()["pointer"] == "/name"
    assert [level.value for level in sdk.priority_classes.list()] == [6]
    assert sdk.definitions.export().priority_classes[0].name == "high"
    assert served.http("anna").delete("/priority-classes/high").status_code == 403
    sdk.priority_classes.delete("high", if_version=2)
    assert http.get("/priority-classes/high").status_code == 404


def test_a_full_queue_answers_with_a_code_of_its_own(served: Served) -> None:
    served.http("root").put("/queues/default", json={"name": "default", "caps": {"queued_jobs": 0}})
    answer = served.http().post("/jobs", json=a_manifest())
    assert (answer.status_code, answer.json()["code"]) == (409, "over_cap")
    batch = served.http().post("/jobs:batch", json={"jobs": [{"manifest": a_manifest()}]})
    assert batch.json()["items"][0]["error"]["code"] == "over_cap"


@pytest.mark.parametrize(
    ("body", "status", "pointer"),
    [
        ({}, 422, "/priority"),
        ({"priority_class": "none"}, 422, "/priority_class"),
        ({"priority": 1, "priority_class": ""}, 200, ""),
    ],
)
def test_a_job_is_reprioritised_by_number_class_or_both(
    served: Served, body: dict[str, Any], status: int, pointer: str
) -> None:
    http = served.http()
    job = http.post("/jobs", json=a_manifest()).json()["id"]
    answer = http.post(f"/jobs/{job}:reprioritise", json=body)
    assert (answer.status_code, answer.json().get("pointer", "")) == (status, pointer)
