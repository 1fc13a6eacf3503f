"""What the cluster is sent: the user's document with what the gateway owns put over it."""

import json
from dataclasses import replace
from typing import Any

import pytest

from gateway.backends.kubeflow.rendering import disagreement, is_own, render
from gateway.core.vocabulary import SCHEDULING_GATE
from tests.contract.backends.launches import a_launch, a_manifest

TEMPLATES = ("Master", "Worker")


def template(job: dict[str, Any], pod_set: str) -> dict[str, Any]:
    found: dict[str, Any] = job["spec"]["pytorchReplicaSpecs"][pod_set]["template"]
    return found


def rich_manifest() -> dict[str, Any]:
    manifest = a_manifest(2, env={"B": "1", "TRAINING_GATEWAY_GPUS": "mine", "A": "$(B)"})
    manifest["metadata"]["labels"] = {"team": "vision", "kueue.x-k8s.io/queue-name": "other"}
    manifest["metadata"]["uid"] = "somebody-elses"
    manifest["status"] = {"conditions": []}
    manifest["spec"]["runPolicy"] = {
        "suspend": False,
        "cleanPodPolicy": "None",
        "ttlSecondsAfterFinished": 5,
        "activeDeadlineSeconds": 5,
        "backoffLimit": 1,
        "schedulingPolicy": {"queue": "q"},
        "managedBy": "kubeflow.org/training-operator",
    }
    spec = manifest["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"]
    spec |= {
        "aFieldOfTheFuture": {"kept": True},
        "schedulingGates": [{"name": "example.org/theirs"}],
        "initContainers": [{"name": "fetch", "image": "i"}],
        "priorityClassName": "user-chosen",
        "priority": 7,
        "nodeSelector": {"pool": "a"},
    }
    spec["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": "1"}}
    return manifest


def test_the_object_is_suspended_and_every_template_is_gated() -> None:
    job = render(a_launch(rich_manifest()))

    assert job["spec"]["runPolicy"]["suspend"] is True
    for pod_set in TEMPLATES:
        spec = template(job, pod_set)["spec"]
        assert {"name": SCHEDULING_GATE} in spec["schedulingGates"]
        assert spec["schedulerName"] == "default-scheduler"
    gates = template(job, "Master")["spec"]["schedulingGates"]
    assert gates == [{"name": "example.org/theirs"}, {"name": SCHEDULING_GATE}]


def test_the_gateway_owns_the_run_policy() -> None:
    policy = render(a_launch(rich_manifest()))["spec"]["runPolicy"]

    assert policy == {
        "suspend": True,
        "cleanPodPolicy": "Running",
        "managedBy": "kubeflow.org/training-operator",
    }


def test_cleaning_all_pods_stays_a_users_choice() -> None:
    manifest = a_manifest()
    manifest["spec"]["runPolicy"] = {"cleanPodPolicy": "All"}

    assert render(a_launch(manifest))["spec"]["runPolicy"]["cleanPodPolicy"] == "All"


def test_the_plan_comes_first_in_every_container_and_the_users_order_is_kept() -> None:
    job = render(a_launch(rich_manifest()))

    spec = template(job, "Master")["spec"]
    for container in (*spec["containers"], *spec["initContainers"]):
        ours = [entry for entry in container["env"] if "valueFrom" in entry]
        assert {entry["name"].startswith("TRAINING_GATEWAY_") for entry in ours} == {True}
        assert container["env"][: len(ours)] == ours
    names = [entry["name"] for entry in spec["containers"][0]["env"]]
    assert names[-2:] == ["B", "A"]
    assert len(names) == len(set(names)), "an entry of the same name is replaced"
    gpus = next(e for e in spec["containers"][0]["env"] if e["name"] == "TRAINING_GATEWAY_GPUS")
    path = gpus["valueFrom"]["fieldRef"]["fieldPath"]
    assert path == "metadata.annotations['training-gateway.io/gpus']"


def test_what_the_user_wrote_stays() -> None:
    job = render(a_launch(rich_manifest()))

    spec = template(job, "Master")["spec"]
    assert spec["aFieldOfTheFuture"] == {"kept": True}
    assert spec["nodeSelector"] == {"pool": "a"}
    assert spec["containers"][0]["resources"] == {"limits": {"nvidia.com/gpu": "1"}}
    assert job["metadata"]["labels"]["team"] == "vision"


def test_identity_of_others_is_left_out() -> None:
    job = render(a_launch(rich_manifest()))

    assert "status" not in job
    assert "uid" not in job["metadata"]
    assert "kueue.x-k8s.io/queue-name" not in job["metadata"]["labels"]


def test_a_configured_priority_class_replaces_the_users() -> None:
    spec = template(render(a_launch(rich_manifest()), "training-gateway"), "Master")["spec"]
    assert spec["priorityClassName"] == "training-gateway"
    assert "priority" not in spec

    spec = template(render(a_launch(rich_manifest())), "Master")["spec"]
    assert spec["priorityClassName"] == "user-chosen"


@pytest.mark.parametrize("place", ["labels", "annotations"])
def test_a_sidecar_is_kept_out_unless_the_user_says_otherwise(place: str) -> None:
    manifest = a_manifest()
    metadata = template(render(a_launch(manifest)), "Master")["metadata"]
    assert metadata[place]["sidecar.istio.io/inject"] == "false"

    sets = manifest["spec"]["pytorchReplicaSpecs"]
    sets["Master"]["template"]["metadata"] = {place: {"sidecar.istio.io/inject": "true"}}
    metadata = template(render(a_launch(manifest)), "Master")["metadata"]
    assert metadata[place]["sidecar.istio.io/inject"] == "true"


def test_replicas_are_written_out_as_reserved() -> None:
    manifest = a_manifest(2)
    launch = a_launch(manifest)
    del manifest["spec"]["pytorchReplicaSpecs"]["Master"]["replicas"]

    sets = render(replace(launch, manifest=manifest))["spec"]["pytorchReplicaSpecs"]

    assert {name: entry["replicas"] for name, entry in sets.items()} == {"Master": 1, "Worker": 2}


def test_rendering_is_repeatable_and_leaves_the_document_alone() -> None:
    manifest = rich_manifest()
    before = json.dumps(manifest)
    launch = a_launch(manifest)

    once = render(launch, "c")

    assert json.dumps(manifest) == before
    assert render(launch, "c") == once
    assert render(replace(launch, manifest=once), "c") == once


def test_label_values_are_short_enough() -> None:
    labels = render(a_launch())["metadata"]["labels"]

    assert all(len(value) <= 63 for value in labels.values())


def test_an_object_is_own_by_job_attempt_and_hash_whatever_the_epoch() -> None:
    launch = a_launch()
    job = render(launch)

    assert is_own(job, launch)
    assert is_own(job, replace(launch, epoch=9))
    assert not is_own(job, replace(launch, attempt=2))
    assert not is_own(job, replace(launch, spec_digest="cd" * 32))
    assert not is_own(job, replace(launch, job_id="other"))


def test_a_rendered_object_agrees_and_a_changed_one_says_why_not() -> None:
    launch = a_launch()
    assert disagreement(render(launch), launch) == ""

    job = render(launch)
    template(job, "Worker")["spec"]["schedulingGates"] = []
    assert "Worker lost the scheduling gate" in disagreement(job, launch)

    job = render(launch)
    job["spec"]["pytorchReplicaSpecs"]["Worker"]["replicas"] = 5
    assert "Worker has 5 replicas, 1 are reserved" in disagreement(job, launch)

    job = render(launch)
    job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = "q"
    assert "Kueue" in disagreement(job, launch)
