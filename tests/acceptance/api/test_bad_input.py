"""Bad submissions: refused with place and hint, by every way in alike, and nothing is stored."""

import json
from typing import Any

import httpx2
import pytest

from gateway.errors import GatewayError
from tests.acceptance.api.bodies import a_manifest
from tests.acceptance.conftest import Served

JSON = {"Content-Type": "application/json"}
YAML = {"Content-Type": "application/yaml"}


def changed(path: str, value: Any) -> dict[str, Any]:
    """Give a good manifest with one value changed; `-` in the value's place removes it."""
    manifest = a_manifest(gpu=1, workers=1)
    place: Any = manifest
    *steps, last = path.split("/")
    for step in steps:
        place = place[int(step)] if isinstance(place, list) else place[step]
    place[last] = value
    return manifest


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (b"", JSON),
        (b"{", JSON),
        (b'{"kind": "PyTorchJob", "kind": "PyTorchJob"}', JSON),
        (b'{"a": NaN}', JSON),
        (b'{"a": 1e999}', JSON),
        (b'{"a": "\xff"}', JSON),
        (b"[" * 50_000 + b"]" * 50_000, JSON),
        (b"kind: PyTorchJob\n\tspec: {}\n", YAML),
        (b"a: 1\na: 2\n", YAML),
        (b"\xff\xfe\x00", YAML),
        (b"a: &a [x]\nb: [*a, *a, &c [*a]]\n? [", YAML),
        (b"!!python/object:os.system ls\n", YAML),
    ],
)
def test_what_cannot_be_read_is_malformed(
    shared: Served, body: bytes, headers: dict[str, str]
) -> None:
    answer = shared.http().post("/jobs", content=body, headers=headers)
    assert answer.status_code in {400, 422}, answer.text
    assert answer.json()["hint"]


@pytest.mark.parametrize("body", [[], "text", 5, None, True, [a_manifest()], {}])
def test_what_is_no_single_job_is_refused(shared: Served, body: Any) -> None:
    answer = shared.http().post("/jobs", content=json.dumps(body), headers=JSON)
    assert answer.status_code in {400, 422}, answer.text
    assert answer.json()["hint"]


@pytest.mark.parametrize(
    ("path", "value", "pointer"),
    [
        ("kind", "Job", "/kind"),
        ("metadata/name", "UPPER", "/metadata/name"),
        ("metadata/name", "x" * 64, "/metadata/name"),
        ("metadata/name", 5, "/metadata/name"),
        ("spec/pytorchReplicaSpecs/Master/replicas", 2, "replicas"),
        ("spec/pytorchReplicaSpecs/Worker/replicas", "two", "replicas"),
        ("spec/pytorchReplicaSpecs/Worker/replicas", 1.5, "replicas"),
        ("spec/pytorchReplicaSpecs/Worker/restartPolicy", "Sometimes", "restartPolicy"),
        ("spec/pytorchReplicaSpecs/worker", {}, "/spec/pytorchReplicaSpecs/worker"),
        ("spec/pytorchReplicaSpecs/Master/template/spec/hostNetwork", True, "hostNetwork"),
        ("metadata/annotations", {"training-gateway.io/prioriti": "1"}, "prioriti"),
        ("metadata/annotations", {"training-gateway.io/queue": "nowhere"}, "/queue"),
    ],
)
def test_a_wrong_manifest_is_refused_with_its_place(
    shared: Served, path: str, value: Any, pointer: str
) -> None:
    http = shared.http()
    answer = http.post("/jobs", json=changed(path, value))
    assert answer.status_code == 422, answer.text
    document = answer.json()
    assert pointer in document["pointer"]
    assert document["hint"]
    assert http.get("/jobs").json()["items"] == []


@pytest.mark.parametrize(
    ("envelope", "pointer"),
    [
        ({"manifest": a_manifest(), "overides": {}}, "/overides"),
        ({"manifest": a_manifest(), "overrides": {}, "other": 1}, "/other"),
        ({"manifest": a_manifest(), "overrides": []}, "/overrides"),
        ({"manifest": [], "overrides": {}}, ""),
        ({"manifest": a_manifest(), "overrides": {"prioriti": 1}}, "prioriti"),
        ({"manifest": a_manifest(), "overrides": {"priority": "high"}}, "priority"),
        ({"manifest": a_manifest(), "overrides": {"state": "running"}}, "state"),
        ({"manifest": a_manifest(), "overrides": {"user": "root"}}, "user"),
    ],
)
def test_a_wrong_envelope_is_refused(shared: Served, envelope: Any, pointer: str) -> None:
    answer = shared.http().post("/jobs", json=envelope)
    assert answer.status_code == 422, answer.text
    assert pointer in answer.json().get("pointer", "")


def test_one_override_in_two_places_is_refused(shared: Served) -> None:
    body = {"manifest": a_manifest(), "overrides": {"priority": 1}}
    answer = shared.http().post("/jobs", params={"priority": 2}, json=body)
    assert (answer.status_code, answer.json()["pointer"]) == (422, "/overrides/priority")


@pytest.mark.parametrize("key", ["", "x" * 256])
def test_a_key_of_the_wrong_length_is_refused(shared: Served, key: str) -> None:
    answer = shared.http(**{"Idempotency-Key": key}).post("/jobs", json=a_manifest())
    assert (answer.status_code, answer.json()["pointer"]) == (422, "/idempotency_key")


def test_an_unknown_queue_gets_a_suggestion(shared: Served) -> None:
    document = shared.http().post("/jobs", params={"queue": "defualt"}, json=a_manifest()).json()
    assert document["allowed"] == ["default"]
    assert document["hint"] == "did you mean 'default'?"


def test_a_gang_that_can_never_fit_is_refused_with_what_exists(shared: Served) -> None:
    http = shared.http()
    answer = http.post("/jobs", json=a_manifest(gpu=9))
    assert (answer.status_code, answer.json()["code"]) == (422, "never_fits")
    assert "8" in answer.json()["detail"]
    assert http.post("/jobs", params={"dry_run": "plan"}, json=a_manifest(gpu=9)).status_code == 422


@pytest.mark.parametrize(
    "entry",
    [
        a_manifest("bad", gpu=9),
        {"manifest": changed("kind", "Job")},
        {"manifest": a_manifest("bad"), "overrides": {"queue": "nowhere"}},
        {"manifest": a_manifest("bad"), "idempotency_key": 5},
        {"manifest": a_manifest("bad"), "idempotency_key": "", "overrides": {}},
        {"manifest": a_manifest("bad"), "other": 1},
        "text",
        None,
    ],
)
def test_a_bad_job_of_a_batch_fails_alone(served: Served, entry: Any) -> None:
    http = served.http()
    jobs = [a_manifest("one", gpu=1), entry, a_manifest("two", gpu=1)]
    answer = http.post("/jobs:batch", json={"jobs": jobs})
    assert answer.status_code == 200, answer.text
    items = answer.json()["items"]
    assert [item["index"] for item in items] == [0, 1, 2]
    assert [item["job"] and item["job"]["name"] for item in items] == ["one", None, "two"]
    error = items[1]["error"]
    assert error["code"]
    assert error["detail"]
    assert error["hint"]
    assert len(http.get("/jobs").json()["items"]) == 2


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"jobs": []}, 422),
        ({"jobs": {}}, 422),
        ({"job": [a_manifest()]}, 422),
        ({"jobs": [a_manifest()], "x": 1}, 422),
        ([a_manifest()], 422),
        ({"jobs": [{}] * 1001}, 413),
    ],
)
def test_a_wrong_batch_is_refused_whole(shared: Served, body: Any, status: int) -> None:
    answer: httpx2.Response = shared.http().post("/jobs:batch", json=body)
    assert answer.status_code == status, answer.text
    assert answer.json()["pointer"].startswith("/")


def test_equal_keys_in_one_batch_make_one_job(served: Served) -> None:
    entry = {"manifest": a_manifest(), "idempotency_key": "same"}
    items = served.http().post("/jobs:batch", json={"jobs": [entry, entry]}).json()["items"]
    assert items[0]["job"]["id"] == items[1]["job"]["id"]
    assert [item["is_new"] for item in items] == [True, False]


def test_the_sdk_raises_what_rest_answers(shared: Served) -> None:
    manifest = changed("spec/pytorchReplicaSpecs/Worker/restartPolicy", "Sometimes")
    document = shared.http().post("/jobs", json=manifest).json()
    with pytest.raises(GatewayError) as caught:
        shared.sdk().submit(manifest)
    error = caught.value
    told = (error.code, error.pointer, error.hint, error.detail)
    assert told == tuple(document[field] for field in ("code", "pointer", "hint", "detail"))
