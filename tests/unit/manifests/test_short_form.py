"""The short form renders one Master and `workers` Workers, all alike."""

from typing import Any

import pytest

from gateway.core.vocabulary import PairRule
from gateway.errors import NotSupportedYet
from gateway.manifests import ReadOptions, read_job
from tests.unit.manifests.building import a_manifest, annotated, read_with, refusal_of


def short(**fields: Any) -> dict[str, Any]:
    return {"name": "job", "image": "registry.example/train:1", **fields}


def container_of(document: dict[str, Any]) -> dict[str, Any]:
    replicas = read_job(document).manifest["spec"]["pytorchReplicaSpecs"]
    container: dict[str, Any] = replicas["Master"]["template"]["spec"]["containers"][0]
    return container


def test_workers_stand_beside_one_master() -> None:
    assert [(each.name, each.count) for each in read_job(short(workers=3)).pod_sets] == [
        ("Master", 1),
        ("Worker", 3),
    ]
    assert [each.name for each in read_job(short(workers=0)).pod_sets] == ["Master"]


def test_the_short_form_equals_the_manifest_that_it_renders() -> None:
    of_short = read_job(short(command=["a"], resources={"gpu": 1}, devices={"pair": "numa"}))
    resources = {"requests": {"nvidia.com/gpu": 1}, "limits": {"nvidia.com/gpu": 1}}
    of_manifest = a_manifest(
        {"command": ["a"], "resources": resources}, metadata=annotated(pair="numa")
    )
    of_manifest["spec"]["pytorchReplicaSpecs"]["Master"]["restartPolicy"] = "Never"
    assert read_job(of_manifest) == of_short


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("python train.py --name 'a b' $X", ["python", "train.py", "--name", "a b", "$X"]),
        (["python", "train.py"], ["python", "train.py"]),
    ],
)
def test_a_command_is_a_list_or_a_text_split_as_a_shell_would(
    given: object, expected: list[str]
) -> None:
    assert container_of(short(command=given))["command"] == expected
    assert container_of(short(args=given))["args"] == expected


def test_env_is_a_mapping_or_kubernetes_own_list() -> None:
    assert container_of(short(env={"N": 1, "A": "$(N)", "M": "b"}))["env"] == [
        {"name": "M", "value": "b"},
        {"name": "N", "value": "1"},
        {"name": "A", "value": "$(N)"},
    ]
    listed = [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]
    assert container_of(short(env=listed))["env"] == listed


def test_devices_get_limits_and_the_names_that_the_settings_say() -> None:
    options = ReadOptions(short_form_gpu="amd.com/gpu", short_form_rdma="rdma/ib")
    spec = read_job(short(resources={"cpu": 2, "gpu": 2, "rdma": 1}), options)
    template = spec.manifest["spec"]["pytorchReplicaSpecs"]["Master"]["template"]
    assert template["spec"]["containers"][0]["resources"] == {
        "requests": {"cpu": 2, "amd.com/gpu": 2, "rdma/ib": 1},
        "limits": {"amd.com/gpu": 2, "rdma/ib": 1},
    }
    assert spec.pod_sets[0].per_pod == {"cpu": 2000, "gpu": 2, "rdma": 1}


@pytest.mark.parametrize(("given", "expected"), [(4, "4"), ("gpu", "gpu"), ("4", "4")])
def test_processes_per_node_become_text(given: object, expected: str) -> None:
    assert read_job(short(nproc_per_node=given)).manifest["spec"]["nprocPerNode"] == expected


@pytest.mark.parametrize(
    ("fields", "pointer", "hint"),
    [
        ({"workers": -1}, "/workers", "range"),
        ({"workers": "3"}, "/workers", "without quotes"),
        ({"workers": True}, "/workers", "whole number"),
        ({"nproc_per_node": 0}, "/nproc_per_node", "range"),
        ({"nproc_per_node": "some"}, "/spec/nprocPerNode", '"8"'),
        ({"command": "a 'b"}, "/command", "quotes"),
        ({"command": [1]}, "/command/0", "quotes"),
        ({"env": {"A": True}}, "/env/A", "booleans"),
        ({"image": ""}, "/image", "image"),
        ({"gpus": 4}, "/gpus", "resources: {gpu: N}"),
        ({"resources": {"gpu": None}}, "/resources/gpu", "give a value"),
        ({"resources": []}, "/resources", "a mapping"),
        ({"devices": {"pair": "nume"}}, "/devices/pair", "did you mean 'numa'"),
        ({"labels": {"a": 1}}, "/metadata/labels/a", "quotes"),
        ({"queue": "a", "annotations": {"training-gateway.io/queue": "b"}}, "/queue", "one place"),
        ({"priority": 2_000_000_000}, "/priority", "range"),
    ],
)
def test_wrong_fields_are_refused(fields: dict[str, Any], pointer: str, hint: str) -> None:
    error = refusal_of(short(**fields))
    assert error.pointer.endswith(pointer)
    assert hint in error.hint


@pytest.mark.parametrize(
    "fields",
    [
        {"resources": {"mig-1g.5gb": 1}},
        {"resources": {"rdma_share": 50}},
        {"resources": {"gpu-memory": "10Gi"}},
        {"resources": {"vf": 1}},
        {"retries": {"limit": 3}},
        {"depends_on": [{"job": "a", "condition": "succeeded"}]},
        {"flavors": ["h100"]},
    ],
)
def test_what_is_not_built_is_refused(fields: dict[str, Any]) -> None:
    assert type(refusal_of(short(**fields))) is NotSupportedYet


def test_overrides_replace_parts_and_merge_env() -> None:
    document = short(env={"A": "1", "B": "1"}, workers=1, resources={"gpu": 1})
    spec = read_with(document, env={"B": "2"}, workers=2, image="other:1", resources={"cpu": 1})
    assert [each.count for each in spec.pod_sets] == [1, 2]
    assert spec.pod_sets[0].per_pod == {"cpu": 1000, "gpu": 1}
    template = spec.manifest["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]
    assert template["spec"]["containers"][0]["image"] == "other:1"
    assert template["spec"]["containers"][0]["env"] == [
        {"name": "A", "value": "1"},
        {"name": "B", "value": "2"},
    ]


def test_a_manifest_beside_fields_is_one_job() -> None:
    spec = read_job({"queue": "q", "name": "job", "manifest": a_manifest(), "pair": "numa"})
    assert (spec.name, spec.queue) == ("job", "q")
    assert spec.pod_sets[0].pair is PairRule.NODE


@pytest.mark.parametrize(
    ("document", "pointer"),
    [
        ({"name": "other", "manifest": a_manifest()}, "/name"),
        ({"image": "a", "manifest": a_manifest()}, "/image"),
        ({"queue": "a", "manifest": a_manifest(metadata=annotated(queue="b"))}, "/queue"),
        ({"manifest": [1]}, "/manifest"),
        ({"manifest": {}}, "/kind"),
        ({"manifest": {"metadata": 1}}, "/metadata"),
        ({"manifest": {"metadata": {"labels": 1}}, "labels": {"a": "b"}}, "/metadata/labels"),
    ],
)
def test_fields_beside_a_manifest_must_not_disagree(document: dict[str, Any], pointer: str) -> None:
    error = refusal_of(document)
    assert error.pointer == pointer
    assert error.hint
