"""Queues, cohorts and flavors over REST and SDK, guarded by their version."""

from typing import Any

import pytest

from gateway.errors import Conflict, Denied, InvalidInput, NotFound, StaleVersion
from gateway.schemas.definitions import (
    CohortSpec,
    DefinitionSet,
    FlavorSpec,
    QueueSpec,
    QuotaSpec,
)
from tests.acceptance.api.bodies import a_manifest
from tests.acceptance.conftest import Served

QUEUE: dict[str, Any] = {
    "name": "research",
    "weight": 2,
    "quotas": [{"flavor": "default", "resource": "gpu", "nominal": 8}],
}


def test_a_queue_is_created_read_replaced_and_deleted(served: Served) -> None:
    http = served.http("root")
    created = http.post("/queues", json=QUEUE)
    assert created.status_code == 201, created.text
    assert created.headers["etag"] == '"1"'
    assert created.headers["location"] == "/api/v1/queues/research"

    found = http.get("/queues/research")
    assert found.json()["quotas"][0]["nominal"] == 8
    changed = http.put("/queues/research", json={**QUEUE, "weight": 3}, headers={"If-Match": '"1"'})
    assert (changed.json()["weight"], changed.headers["etag"]) == (3, '"2"')
    names = [queue["name"] for queue in http.get("/queues").json()["items"]]
    assert names == ["default", "research"]

    assert http.delete("/queues/research", headers={"If-Match": '"1"'}).status_code == 412
    assert http.delete("/queues/research", headers={"If-Match": '"2"'}).status_code == 204
    assert http.get("/queues/research").status_code == 404


def test_a_stale_version_is_a_failed_condition(served: Served) -> None:
    http = served.http("root")
    http.post("/queues", json=QUEUE)
    tries = (('"1"', 200), ('"1"', 412), ('"2"', 200), ("*", 200))
    for weight, (condition, status) in enumerate(tries, start=10):
        body, headers = QUEUE | {"weight": weight}, {"If-Match": condition}
        answer = http.put("/queues/research", json=body, headers=headers)
        assert answer.status_code == status, (condition, answer.text)
    assert answer.headers["etag"] == '"4"'
    refused = http.put("/queues/research", json=QUEUE, headers={"If-Match": 'W/"x"'})
    assert refused.json()["pointer"] == "/headers/if-match"


def test_a_name_does_not_change(served: Served) -> None:
    answer = served.http("root").put("/queues/default", json={"name": "other"})
    assert (answer.status_code, answer.json()["pointer"]) == (422, "/name")


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/queues", QUEUE),
        ("PUT", "/queues/default", {"name": "default"}),
        ("DELETE", "/queues/default", None),
        ("POST", "/queues/default:pause", None),
        ("POST", "/queues/default:resume", None),
        ("POST", "/flavors", {"name": "h100"}),
        ("POST", "/cohorts", {"name": "lab"}),
        ("POST", "/definitions", {}),
        ("GET", "/definitions", None),
        ("POST", "/nodes/dgx-h100-0:cordon", {"reason": "test"}),
    ],
)
def test_only_admins_change_definitions(
    shared: Served, method: str, path: str, body: dict[str, Any] | None
) -> None:
    answer = shared.http("anna").request(method, path, json=body)
    assert (answer.status_code, answer.json()["code"]) == (403, "denied")


def test_a_paused_queue_admits_nothing_and_a_resumed_one_does(served: Served) -> None:
    root, anna = served.sdk("root"), served.sdk("anna")
    assert root.queues.pause("default").state == "paused"
    job = anna.submit(a_manifest(gpu=1))
    served.world.turn()
    job.refresh()
    assert (job.state, job.reason) == ("pending", "QueuePaused")
    assert root.queues.resume("default").state == "open"
    served.world.turn()
    assert job.refresh().state == "launching"


def test_the_sdk_speaks_in_models_and_raises_the_servers_errors(served: Served) -> None:
    root = served.sdk("root")
    root.flavors.create(FlavorSpec(name="h100", node_labels={"gpu": "h100"}))
    root.cohorts.create(CohortSpec(name="lab"))
    quota = QuotaSpec(flavor="h100", resource="gpu", nominal=16)
    spec = QueueSpec(name="vision", cohort="lab", quotas=(quota,), flavors=("h100",))
    created = root.queues.create(spec)
    assert root.queues.get("vision").quotas == (quota,)

    with pytest.raises(Conflict):
        root.queues.create(spec)
    root.queues.update(spec.model_copy(update={"weight": 5}), if_version=created.version)
    with pytest.raises(StaleVersion):
        root.queues.update(spec, if_version=created.version)
    with pytest.raises(InvalidInput) as caught:
        root.queues.create(QueueSpec(name="speech", cohort="lba"))
    assert "lab" in str(caught.value.hint) + str(caught.value.allowed)
    with pytest.raises(Conflict):
        root.cohorts.delete("lab")
    with pytest.raises(NotFound):
        root.queues.delete("unknown")
    with pytest.raises(Denied):
        served.sdk("anna").queues.delete("vision")
    root.queues.delete("vision", if_version=2)
    assert [queue.name for queue in root.queues.list()] == ["default"]


def test_definitions_are_applied_and_exported_as_one_document(served: Served) -> None:
    root = served.sdk("root")
    wanted = DefinitionSet(
        flavors=(FlavorSpec(name="h100", node_labels={"gpu": "h100"}),),
        queues=(QueueSpec(name="a", namespaces=("team-a",)), QueueSpec(name="b")),
    )
    planned = root.definitions.apply(wanted, dry_run=True)
    assert len(planned) == 3
    assert len(root.queues.list()) == 1
    assert root.definitions.apply(wanted) == planned
    assert root.definitions.apply(wanted) == []
    exported = root.definitions.export()
    assert [queue.name for queue in exported.queues] == ["a", "b", "default"]
    assert root.definitions.apply(exported) == []


def test_a_document_with_one_mistake_changes_nothing(served: Served) -> None:
    http = served.http("root")
    body = {"queues": [{"name": "a"}, {"name": "b", "cohort": "unknown"}]}
    answer = http.post("/definitions", json=body)
    assert answer.status_code == 422
    assert answer.json()["pointer"] == "/queues/1/cohort"
    assert len(http.get("/queues").json()["items"]) == 1
