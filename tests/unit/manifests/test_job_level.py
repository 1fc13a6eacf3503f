"""Above the pod templates, everything is checked as operator, webhook and CRD would check it."""

import json
from typing import Any

import pytest

from gateway.errors import InvalidInput, NotSupportedYet
from gateway.manifests import known_fields, read_job
from tests.unit.manifests.building import MASTER, a_manifest, annotated, read_with, refusal_of

LARGE = 2**31


def with_spec(**fields: Any) -> dict[str, Any]:
    return a_manifest(spec=fields, workers=2)


def with_policy(**fields: Any) -> dict[str, Any]:
    return with_spec(runPolicy=fields)


def scheduled(**fields: Any) -> dict[str, Any]:
    return with_policy(schedulingPolicy=fields)


def elastic(**fields: Any) -> dict[str, Any]:
    return with_spec(elasticPolicy=fields)


def replica(kind: str = "Master", **fields: Any) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(json.dumps(a_manifest(workers=2)))
    document["spec"]["pytorchReplicaSpecs"][kind].update(fields)
    return document


WRONG: list[tuple[dict[str, Any], str, str, str]] = [
    (with_policy(backoffLimit=-1), "runPolicy/backoffLimit", "between 0", "range"),
    (with_policy(backoffLimit=LARGE), "runPolicy/backoffLimit", "between 0", "range"),
    (with_policy(backoffLimit="3"), "runPolicy/backoffLimit", "whole number", "without quotes"),
    (with_policy(ttlSecondsAfterFinished=-1), "runPolicy/ttlSecondsAfterFinished", "0", "range"),
    (with_policy(ttlSecondsAfterFinished=0.5), "runPolicy/ttlSecondsAfterFinished", "", "whole"),
    (with_policy(suspend="true"), "runPolicy/suspend", "a boolean", "write true or false"),
    (with_policy(suspend=1), "runPolicy/suspend", "a boolean", "write true or false"),
    (with_policy(cleanPodPolicy="none"), "runPolicy/cleanPodPolicy", "None", "mean 'None'"),
    (with_policy(cleanPodPolicy=False), "runPolicy/cleanPodPolicy", "a text", "quotes"),
    (with_policy(activeDeadlineSeconds=0), "runPolicy/activeDeadlineSeconds", "1", "range"),
    (with_policy(activeDeadlineSeconds=10**10), "runPolicy/activeDeadlineSeconds", "", "range"),
    (with_policy(managedBy="me"), "runPolicy/managedBy", "is ignored", "remove managedBy"),
    (
        with_policy(managedBy="kueue.x-k8s.io/multikueue"),
        "runPolicy/managedBy",
        "is ignored by the training operator",
        "remove managedBy",
    ),
    (with_policy(suspended=True), "runPolicy/suspended", "no field", "did you mean 'suspend'"),
    (with_policy(queue="a"), "runPolicy/queue", "no field", "spec.runPolicy.schedulingPolicy"),
    (with_policy(minReplicas=1), "runPolicy/minReplicas", "no field", "spec.elasticPolicy"),
    (with_spec(suspend=True), "suspend", "no field", "suspend belongs into spec.runPolicy"),
    (with_spec(replicas=3), "replicas", "no field", "replicas belongs into the replica spec"),
    (with_spec(nodeSelector={}), "nodeSelector", "no field", "the pod template's spec"),
    (with_spec(image="a"), "image", "no field", "image belongs into the container"),
    (with_spec(labels={}), "labels", "no field", "labels belongs into metadata"),
    (with_spec(whatever=1), "whatever", "no field", "remove it"),
    (with_spec(activeDeadlineSeconds=1), "activeDeadlineSeconds", "", "into spec.runPolicy"),
    (with_spec(restartPolicy="Never"), "restartPolicy", "no field", "into the replica spec"),
    (with_spec(runPolicy=[]), "runPolicy", "a mapping", "write a mapping"),
    (scheduled(minAvailable=0), "runPolicy/schedulingPolicy/minAvailable", "between 1", "range"),
    (scheduled(minAvailable=4), "runPolicy/schedulingPolicy/minAvailable", "4 pods", "lower it"),
    (
        scheduled(scheduleTimeoutSeconds=0),
        "runPolicy/schedulingPolicy/scheduleTimeoutSeconds",
        "",
        "range",
    ),
    (scheduled(queue="A"), "runPolicy/schedulingPolicy/queue", "is not a DNS label", "lower case"),
    (scheduled(minavailable=3), "runPolicy/schedulingPolicy/minavailable", "", "'minAvailable'"),
    (elastic(minReplicas=3), "elasticPolicy/minReplicas", "do not agree", "set all three"),
    (elastic(maxReplicas=1), "elasticPolicy/maxReplicas", "do not agree", "set all three"),
    (elastic(minReplicas=0), "elasticPolicy/minReplicas", "between 1", "range"),
    (elastic(rdzvBackend="c10"), "elasticPolicy/rdzvBackend", "not one of", "did you mean 'c10d'"),
    (elastic(minreplicas=2), "elasticPolicy/minreplicas", "no field", "mean 'minReplicas'"),
    (
        with_spec(elasticPolicy={"nProcPerNode": 8}, nprocPerNode="8"),
        "elasticPolicy/nProcPerNode",
        "is given twice",
        "keep spec.nprocPerNode only",
    ),
    (with_spec(nprocPerNode=8), "nprocPerNode", "as text only", 'put it into quotes: "8"'),
    (with_spec(nprocPerNode="0"), "nprocPerNode", "not a number of", 'write for example "8"'),
    (with_spec(nprocPerNode="-1"), "nprocPerNode", "not a number of", 'write for example "8"'),
    (with_spec(nprocPerNode="GPU"), "nprocPerNode", "not a number of", "did you mean 'gpu'"),
    (with_spec(nprocPerNode=""), "nprocPerNode", "not a number of", 'write for example "8"'),
    (with_spec(nprocPerNode="\u0668"), "nprocPerNode", "not a number of", 'write for example "8"'),
    (with_spec(nprocPerNode="9999999"), "nprocPerNode", "not a number of", 'example "8"'),
    (with_spec(nprocPerNode=True), "nprocPerNode", "a text belongs here", "quotes"),
]


@pytest.mark.parametrize(("document", "place", "detail", "hint"), WRONG)
def test_a_wrong_field_of_the_job_is_refused_with_its_place(
    document: dict[str, Any], place: str, detail: str, hint: str
) -> None:
    error = refusal_of(document)
    assert type(error) is InvalidInput
    assert error.pointer == f"/spec/{place}"
    assert detail in error.detail
    assert hint in error.hint


@pytest.mark.parametrize(
    ("document", "place"),
    [
        (scheduled(minResources={"cpu": 1}), "runPolicy/schedulingPolicy/minResources"),
        (scheduled(minAvailable=2), "runPolicy/schedulingPolicy/minAvailable"),
        (elastic(metrics=[{"type": "Resource"}]), "elasticPolicy/metrics"),
        (elastic(metrics=[]), "elasticPolicy/metrics"),
        (elastic(minReplicas=1, maxReplicas=2), "elasticPolicy/minReplicas"),
        (elastic(minReplicas=2, maxReplicas=3), "elasticPolicy/maxReplicas"),
    ],
)
def test_what_is_known_but_not_built_says_so(document: dict[str, Any], place: str) -> None:
    error = refusal_of(document)
    assert type(error) is NotSupportedYet
    assert error.pointer == f"/spec/{place}"
    assert "not supported yet" in error.detail
    assert error.hint


@pytest.mark.parametrize(
    "fields",
    [
        {"nprocPerNode": "auto"},
        {"nprocPerNode": "8"},
        {"nprocPerNode": "08"},
        {"nprocPerNode": "999999"},
        {"elasticPolicy": {}},
        {"elasticPolicy": {"minReplicas": 2, "maxReplicas": 2, "rdzvBackend": "etcd-v2"}},
        {"elasticPolicy": {"nProcPerNode": 8, "maxRestarts": 3, "rdzvConf": [{"key": "a"}]}},
        {"runPolicy": {"cleanPodPolicy": "All", "backoffLimit": 0, "suspend": False}},
        {"runPolicy": {"managedBy": "kubeflow.org/training-operator"}},
        {"runPolicy": {"managedBy": ""}},
        {"runPolicy": {"schedulingPolicy": {"minAvailable": 3}}},
        {"runPolicy": {"ttlSecondsAfterFinished": 2**31 - 1}},
        {"runPolicy": {"schedulingPolicy": {"minResources": None, "queue": None}}},
    ],
)
def test_what_the_operator_takes_is_taken_and_kept(fields: dict[str, Any]) -> None:
    spec = read_job(with_spec(**fields))
    assert spec.manifest["spec"].items() >= ({} if "None" in str(fields) else fields).items()
    assert read_job(spec.manifest) == spec


@pytest.mark.parametrize("kind", ["Master", "Worker"])
@pytest.mark.parametrize(
    ("fields", "place", "hint"),
    [
        ({"replica": 1}, "replica", "did you mean 'replicas'"),
        ({"resources": {}}, "resources", "resources belongs into the container"),
        ({"containers": []}, "containers", "the pod template's spec"),
        ({"restartPolicy": "never"}, "restartPolicy", "did you mean 'Never'"),
        ({"restartPolicy": "Sometimes"}, "restartPolicy", "choose one"),
        ({"restartPolicy": True}, "restartPolicy", "quotes"),
        ({"template": []}, "template", "write a mapping"),
        ({"template": {"specs": {}}}, "template/specs", "did you mean 'spec'"),
        ({"template": {"containers": []}}, "template/containers", "the pod template's spec"),
        ({"template": {"spec": {"restartPolicy": "Never"}}}, "template/spec/restartPolicy", "move"),
        ({"replicas": -1}, "replicas", "range"),
        ({"replicas": 10_001}, "replicas", "range"),
        ({"replicas": "1"}, "replicas", "without quotes"),
        ({"replicas": "${N}"}, "replicas", "envsubst"),
        ({"replicas": True}, "replicas", "whole number"),
        ({"replicas": None}, "replicas", "left unset"),
        ({"replicas": 0}, "replicas", ""),
    ],
)
def test_a_wrong_replica_spec_is_refused_for_both_types(
    kind: str, fields: dict[str, Any], place: str, hint: str
) -> None:
    error = refusal_of(replica(kind, **fields))
    assert error.pointer == f"/spec/pytorchReplicaSpecs/{kind}/{place}"
    assert hint in error.hint


@pytest.mark.parametrize("policy", ["Always", "OnFailure", "Never", "ExitCode"])
def test_a_restart_policy_in_the_template_may_only_repeat_the_replicas_own(policy: str) -> None:
    document = replica("Master", restartPolicy=policy)
    template = document["spec"]["pytorchReplicaSpecs"]["Master"]["template"]
    template["spec"] = {**template["spec"], "restartPolicy": policy}
    assert read_job(document).name == "job"
    template["spec"]["restartPolicy"] = "Never" if policy != "Never" else "Always"
    error = refusal_of(document)
    assert error.pointer == f"{MASTER}/template/spec/restartPolicy"
    assert error.hint == "move it up, beside replicas of Master"


@pytest.mark.parametrize(
    ("specs", "pointer", "hint"),
    [
        ({}, "/spec/pytorchReplicaSpecs", "give Master, Worker or both"),
        (None, "/spec/pytorchReplicaSpecs", "give Master, Worker or both"),
        ([], "/spec/pytorchReplicaSpecs", "write a mapping"),
        ({"master": {}}, "/spec/pytorchReplicaSpecs/master", "did you mean 'Master'?"),
        ({"PS": {}}, "/spec/pytorchReplicaSpecs/PS", "a PyTorchJob has Master and Worker"),
        ({"Worker": {"replicas": 2}}, "/spec/pytorchReplicaSpecs", "add a Master"),
    ],
)
def test_replica_types_are_master_and_worker_only(specs: Any, pointer: str, hint: str) -> None:
    document = a_manifest()
    document["spec"] = {"pytorchReplicaSpecs": specs, "runPolicy": {}}
    error = refusal_of(document)
    assert error.pointer == pointer
    assert hint in error.hint


def test_workers_alone_need_an_elastic_policy_and_it_needs_workers() -> None:
    document = a_manifest(spec={"elasticPolicy": {}}, workers=3)
    del document["spec"]["pytorchReplicaSpecs"]["Master"]
    assert [(each.name, each.count) for each in read_job(document).pod_sets] == [("Worker", 3)]
    error = refusal_of(a_manifest(spec={"elasticPolicy": {}}))
    assert (error.pointer, error.hint) == ("/spec/elasticPolicy", "add Worker")


def test_pod_sets_come_master_first_whatever_the_order_of_the_document() -> None:
    document = a_manifest(workers=2)
    specs = document["spec"]["pytorchReplicaSpecs"]
    document["spec"]["pytorchReplicaSpecs"] = dict(reversed(list(specs.items())))
    assert [each.name for each in read_job(document).pod_sets] == ["Master", "Worker"]


@pytest.mark.parametrize("key", sorted(known_fields.SERVER_METADATA))
def test_what_only_the_server_writes_is_left_out(key: str) -> None:
    document = {**a_manifest(metadata={key: "x"}), "status": {"conditions": []}}
    spec = read_job(document)
    assert spec == read_job(a_manifest())
    assert key not in spec.manifest["metadata"]


def test_kubectls_own_copy_of_the_object_is_left_out_and_the_rest_is_kept() -> None:
    copied = "kubectl.kubernetes.io/last-applied-configuration"
    spec = read_job(a_manifest(metadata={"annotations": {copied: "{}", "a": "b"}}))
    assert spec.annotations == {"a": "b"}
    assert spec.manifest["metadata"]["annotations"] == {"a": "b"}


@pytest.mark.parametrize("key", ["ownerReferences", "finalizers"])
def test_nobody_else_decides_when_a_job_is_deleted(key: str) -> None:
    error = refusal_of(a_manifest(metadata={key: ["x"]}))
    assert error.detail.endswith(f"{key} would let others decide when the job is deleted")
    assert read_job(a_manifest(metadata={key: []})).name == "job"


@pytest.mark.parametrize(
    ("key", "hint"),
    [("lables", "did you mean 'labels'?"), ("Name", "did you mean 'name'?"), ("x", "remove it")],
)
def test_an_unknown_field_of_metadata_is_refused(key: str, hint: str) -> None:
    error = refusal_of(a_manifest(metadata={key: "x"}))
    assert (error.pointer, error.hint) == (f"/metadata/{key}", hint)


@pytest.mark.parametrize("value", ["3", 3, "03"])
def test_min_available_counts_the_master_too(value: object) -> None:
    spec = read_with(a_manifest(workers=2), min_available=value)
    assert sum(each.count for each in spec.pod_sets) == 3
    assert (
        read_job(a_manifest(workers=2, metadata=annotated(min_available=str(value)))).hold is False
    )
