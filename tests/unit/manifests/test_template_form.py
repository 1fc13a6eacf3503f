"""The form of a pod template is checked in every container of every kind and of every replica."""

import json
from typing import Any

import pytest

from gateway.errors import GatewayError, InvalidInput, NotSupportedYet
from gateway.manifests import read_job
from tests.unit.manifests.building import POD, a_container, a_manifest, refusal_of

KINDS = ["containers", "initContainers"]
REPLICAS = ["Master", "Worker"]


def in_replica(replica: str, kind: str, fields: dict[str, Any]) -> dict[str, Any]:
    """Give a job whose other container, of this kind in this replica, has these fields."""
    document: dict[str, Any] = json.loads(json.dumps(a_manifest(workers=2)))
    spec = document["spec"]["pytorchReplicaSpecs"][replica]["template"]["spec"]
    spec.setdefault(kind, []).append({**a_container(), "name": "other", **fields})
    return document


def place_in(replica: str, kind: str) -> str:
    index = 1 if kind == "containers" else 0
    return f"/spec/pytorchReplicaSpecs/{replica}/template/spec/{kind}/{index}"


WRONG_CONTAINERS: list[tuple[dict[str, Any], str, str]] = [
    ({"name": ""}, "/name", "start and end with none of the last"),
    ({"name": "Other"}, "/name", "use lower case letters"),
    ({"name": "a_b"}, "/name", "use lower case letters"),
    ({"name": "a" * 64}, "/name", "use lower case letters"),
    ({"name": None}, "/name", "use lower case letters"),
    ({"name": 5}, "/name", 'put it into quotes: "5"'),
    ({"image": ""}, "/image", "give a container image"),
    ({"image": " \t"}, "/image", "give a container image"),
    ({"image": None}, "/image", "give a container image"),
    ({"image": "a b"}, "/image", "remove the spaces"),
    ({"image": "a:1 "}, "/image", "remove the spaces"),
    ({"image": "$IMAGE"}, "/image", "a variable was left unexpanded"),
    ({"image": "a:${TAG}"}, "/image", "a variable was left unexpanded"),
    ({"image": ["a"]}, "/image", "write a text"),
    ({"command": "python a.py"}, "/command", "write a list"),
    ({"command": ["a", 1]}, "/command/1", 'put it into quotes: "1"'),
    ({"command": ["a", True]}, "/command/1", "YAML reads true"),
    ({"command": ["a", None]}, "/command/1", "give a value"),
    ({"args": {"a": 1}}, "/args", "write a list"),
    ({"args": [0.5]}, "/args/0", 'put it into quotes: "0.5"'),
    ({"workingDir": 5}, "/workingDir", "quotes"),
    ({"imagePullPolicy": False}, "/imagePullPolicy", "quotes"),
    ({"env": {"A": "1"}}, "/env", "write a list"),
    ({"env": [{"value": "1"}]}, "/env/0/name", "give the name"),
    ({"env": [{"name": "", "value": "1"}]}, "/env/0/name", "give the name"),
    ({"env": [{"name": "A=1"}]}, "/env/0/name", "give the name"),
    ({"env": [{"name": "A B", "value": "1"}]}, "/env/0/name", "give the name"),
    ({"env": [{"name": "A\n", "value": "1"}]}, "/env/0/name", "give the name"),
    ({"env": [{"name": "A", "value": 1}]}, "/env/0/value", 'put it into quotes: "1"'),
    ({"env": [{"name": "A", "value": False}]}, "/env/0/value", "YAML reads true"),
    ({"env": ["A=1"]}, "/env/0", "write a mapping"),
    ({"env": [{"name": "A", "valueFrom": "b"}]}, "/env/0/valueFrom", "write a mapping"),
    ({"env": [{"name": "A", "value": "", "valueFrom": {}}]}, "/env/0", "keep one of the two"),
    ({"env": [{"name": "A"}, {"name": "A"}]}, "/env/1/name", "rename or remove one of the two"),
    ({"ports": [{"containerPort": 0}]}, "/ports/0/containerPort", "range"),
    ({"ports": [{"containerPort": 65_536}]}, "/ports/0/containerPort", "range"),
    ({"ports": [{"containerPort": "80"}]}, "/ports/0/containerPort", "without quotes"),
    ({"ports": [{"name": "a"}]}, "/ports/0/containerPort", "give a value"),
    ({"ports": [{"containerPort": 80, "hostPort": -1}]}, "/ports/0/hostPort", "range"),
    ({"ports": [{"containerPort": 80, "name": 80}]}, "/ports/0/name", "quotes"),
    ({"ports": [80]}, "/ports/0", "write a mapping"),
    ({"commands": []}, "/commands", "did you mean 'command'?"),
    ({"volumeMount": []}, "/volumeMount", "did you mean 'volumeMounts'?"),
    ({"nodeSelector": {}}, "/nodeSelector", "nodeSelector belongs into the pod template's spec"),
    ({"volumes": []}, "/volumes", "volumes belongs into the pod template's spec"),
    ({"replicas": 2}, "/replicas", "replicas belongs into the replica spec"),
    ({"cleanPodPolicy": "All"}, "/cleanPodPolicy", "cleanPodPolicy belongs into spec.runPolicy"),
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("replica", REPLICAS)
@pytest.mark.parametrize(("fields", "place", "hint"), WRONG_CONTAINERS)
def test_a_wrong_container_is_refused_wherever_it_is(
    replica: str, kind: str, fields: dict[str, Any], place: str, hint: str
) -> None:
    error = refusal_of(in_replica(replica, kind, fields))
    assert type(error) is InvalidInput
    assert error.pointer == place_in(replica, kind) + place
    assert hint in error.hint


@pytest.mark.parametrize(
    "fields",
    [
        {"env": [{"name": "a.b-c", "value": ""}, {"name": "A"}, {"name": "\u00e9", "value": "x"}]},
        {"env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]},
        {"ports": [{"containerPort": 1, "hostPort": 0, "protocol": "UDP"}]},
        {"ports": [{"containerPort": 65_535}]},
        {"command": [], "args": [""]},
        {"image": "registry.example:5000/a/b@sha256:" + "0" * 64},
        {"lifecycle": {"preStop": {"exec": {"command": ["sleep", "1"]}}}},
        {"aFieldOfTomorrow": [1, {"b": None}]},
        {"stdin": False, "tty": True, "resizePolicy": []},
    ],
)
def test_a_right_container_is_kept_as_it_was_written(fields: dict[str, Any]) -> None:
    spec = read_job(in_replica("Worker", "containers", fields))
    template = spec.manifest["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]
    kept = template["spec"]["containers"][1]
    expected = json.loads(json.dumps(fields).replace('"b": null', ""))
    assert {key: kept[key] for key in expected} == expected


@pytest.mark.parametrize(
    ("field", "value", "hint"),
    [
        ("resourceClaims", [{"name": "a"}], "ask for devices as resources"),
        ("schedulingGroup", {"podGroupName": "a"}, "starts all pods of the job together"),
        ("workloadRef", {"name": "a"}, "starts all pods of the job together"),
        ("priorityClassName", "high", "use the annotation training-gateway.io/priority"),
        ("priority", 0, "use the annotation training-gateway.io/priority"),
        ("priority", 10, "use the annotation training-gateway.io/priority"),
        ("preemptionPolicy", "Never", "started pods preempt nobody"),
    ],
)
@pytest.mark.parametrize("workers", [0, 2])
def test_fields_that_would_go_around_the_gateway_are_not_supported(
    field: str, value: object, hint: str, workers: int
) -> None:
    error = refusal_of(a_manifest(pod={field: value}, workers=workers))
    assert (type(error), error.pointer) == (NotSupportedYet, f"{POD}/{field}")
    assert error.detail.endswith(f"{field} is not supported yet")
    assert hint in error.hint


@pytest.mark.parametrize("field", ["resourceClaims", "schedulingGroup", "priorityClassName"])
def test_a_field_that_is_there_and_asks_for_nothing_is_taken(field: str) -> None:
    assert read_job(a_manifest(pod={field: None})).name == "job"
    assert read_job(a_manifest(pod={field: []})).name == "job"


@pytest.mark.parametrize(
    ("pod", "place", "hint"),
    [
        ({"containers": []}, "containers", "add a container named 'pytorch' with an image"),
        ({"containers": None}, "containers", "add a container named 'pytorch' with an image"),
        ({"containers": {}}, "containers", "write a list"),
        ({"containers": ["a"]}, "containers/0", "write a mapping"),
        ({"container": []}, "container", "did you mean 'containers'?"),
        ({"tolerations": {}}, "tolerations", "write a list"),
        ({"nodeselector": {}}, "nodeselector", "did you mean 'nodeSelector'?"),
        ({"image": "a"}, "image", "image belongs into the container"),
        ({"command": []}, "command", "command belongs into the container"),
        ({"restartPolcy": "a"}, "restartPolcy", "did you mean 'restartPolicy'?"),
        ({"nodeSelector": {"a": 1}}, "nodeSelector/a", 'put it into quotes: "1"'),
        ({"nodeSelector": ["a"]}, "nodeSelector", "write a mapping"),
        ({"volumes": [{"name": "a"}, {"name": "a"}]}, "volumes/1/name", "rename or remove"),
        ({"schedulerName": "volcano"}, "schedulerName", "the gateway chooses the nodes"),
        ({"schedulingGates": [{"name": "a/b"}]}, "schedulingGates", "start the job held instead"),
    ],
)
def test_a_wrong_pod_is_refused_with_its_place(pod: dict[str, Any], place: str, hint: str) -> None:
    error = refusal_of(a_manifest(pod=pod))
    assert error.pointer == f"{POD}/{place}"
    assert hint in error.hint


@pytest.mark.parametrize(
    ("names", "index", "suggested"),
    [
        (["main"], 0, "main"),
        (["side", "py-torch"], 1, "py-torch"),
        (["side", "pytorch-1"], 1, "pytorch-1"),
        (["a", "b"], 0, "a"),
    ],
)
def test_the_container_that_was_meant_to_train_is_pointed_at(
    names: list[str], index: int, suggested: str
) -> None:
    containers = [{**a_container(), "name": name} for name in names]
    error = refusal_of(a_manifest(pod={"containers": containers}))
    assert error.pointer == f"{POD}/containers/{index}/name"
    assert error.hint == f"rename the container '{suggested}' to 'pytorch'"
    assert error.allowed == ("pytorch",)


@pytest.mark.parametrize("kind", KINDS)
def test_names_are_unique_among_all_containers_of_a_pod(kind: str) -> None:
    twin = {**a_container(), "name": "pytorch"}
    listed = [a_container(), twin] if kind == "containers" else [twin]
    error = refusal_of(a_manifest(pod={kind: listed}))
    assert error.detail.endswith("the container 'pytorch' is there twice")
    assert error.pointer == f"{POD}/{kind}/{len(listed) - 1}/name"


def metadata_refusal(kind: str, key: str, value: object, level: str) -> GatewayError:
    if level == "job":
        return refusal_of(a_manifest(metadata={kind: {key: value}}))
    document = a_manifest()
    template = document["spec"]["pytorchReplicaSpecs"]["Master"]["template"]
    template["metadata"] = {kind: {key: value}}
    return refusal_of(document)


@pytest.mark.parametrize("level", ["job", "template"])
@pytest.mark.parametrize(
    ("kind", "key", "value", "hint"),
    [
        ("labels", "a", 1, 'put it into quotes: "1"'),
        ("labels", "a", True, "YAML reads true"),
        ("labels", "a", "b c", "or make it an annotation"),
        ("labels", "a", "x" * 64, "or make it an annotation"),
        ("labels", "a", "b\n", "or make it an annotation"),
        ("labels", "a", "\u00e9", "or make it an annotation"),
        ("labels", "x" * 64, "a", "rename the key"),
        ("labels", "A/b", "a", "rename the key"),
        ("labels", "a.b/", "a", "rename the key"),
        ("labels", "-a", "a", "rename the key"),
        ("annotations", "a b", "x", "rename the key"),
        ("annotations", "x" * 254 + "/a", "x", "rename the key"),
        ("annotations", "a", 5, 'put it into quotes: "5"'),
        ("annotations", "a", ["x"], "write a text"),
        ("labels", "training-gateway.io/x", "y", ""),
    ],
)
def test_labels_and_annotations_are_checked_on_the_job_and_its_templates(
    level: str, kind: str, key: str, value: object, hint: str
) -> None:
    error = metadata_refusal(kind, key, value, level)
    top = "" if level == "job" else "/spec/pytorchReplicaSpecs/Master/template"
    assert error.pointer == f"{top}/metadata/{kind}/{key.replace('/', '~1')}"
    assert hint in error.hint
