"""Each field of the short form lands where the operator reads it, or is refused where it stands."""

from typing import Any

import pytest

from gateway.errors import GatewayError, InvalidInput, NotSupportedYet
from gateway.manifests import ReadOptions, read_job
from gateway.manifests.short_form import KEYS, MAX_WORKERS, render
from tests.unit.manifests.building import a_manifest, read_with, refusal_of

DEFAULTS = ReadOptions()


def short(**fields: Any) -> dict[str, Any]:
    return {"name": "job", "image": "a", **fields}


def refusal(**fields: Any) -> GatewayError:
    return refusal_of(short(**fields))


def container_of(document: dict[str, Any], kind: str = "Master") -> dict[str, Any]:
    replicas = read_job(document).manifest["spec"]["pytorchReplicaSpecs"]
    container: dict[str, Any] = replicas[kind]["template"]["spec"]["containers"][0]
    return container


def test_the_smallest_short_form_is_one_master_that_is_started_once() -> None:
    assert render(short(), DEFAULTS) == {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": "job"},
        "spec": {
            "pytorchReplicaSpecs": {
                "Master": {
                    "replicas": 1,
                    "restartPolicy": "Never",
                    "template": {"spec": {"containers": [{"name": "pytorch", "image": "a"}]}},
                }
            }
        },
    }


FULL: dict[str, Any] = short(
    namespace="research",
    labels={"team": "a"},
    annotations={"note": "b"},
    command="python train.py",
    args=["--epochs", "3"],
    env={"SEED": 1},
    workers=2,
    nproc_per_node=8,
    resources={"cpu": "4", "gpu": 1, "rdma": 1, "hugepages-2Mi": "4Mi"},
    queue="q",
    priority=5,
    devices={"pair": "numa", "required": False},
)


def test_names_labels_and_the_gateways_fields_become_metadata() -> None:
    manifest = render(FULL, DEFAULTS)
    assert manifest["metadata"] == {
        "name": "job",
        "namespace": "research",
        "labels": {"team": "a"},
        "annotations": {
            "note": "b",
            "training-gateway.io/queue": "q",
            "training-gateway.io/priority": "5",
            "training-gateway.io/pair": "numa",
            "training-gateway.io/pair-required": "false",
        },
    }
    assert manifest["spec"]["nprocPerNode"] == "8"


def test_master_and_workers_are_alike_and_devices_are_limited_too() -> None:
    replicas = render(FULL, DEFAULTS)["spec"]["pytorchReplicaSpecs"]
    master = replicas["Master"]
    devices = {"nvidia.com/gpu": 1, "rdma/hca": 1, "hugepages-2Mi": "4Mi"}
    assert replicas["Worker"] == {**master, "replicas": 2}
    assert master["template"]["spec"]["containers"] == [
        {
            "name": "pytorch",
            "image": "a",
            "command": ["python", "train.py"],
            "args": ["--epochs", "3"],
            "env": [{"name": "SEED", "value": "1"}],
            "resources": {"requests": {"cpu": "4", **devices}, "limits": devices},
        }
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", None),
        ("  ", None),
        ("python", ["python"]),
        ("a  b\tc", ["a", "b", "c"]),
        ("a 'b c' \"d e\"", ["a", "b c", "d e"]),
        ("a ''", ["a", ""]),
        ("a\\ b", ["a b"]),
        ("echo $HOME $(X) *", ["echo", "$HOME", "$(X)", "*"]),
        ("a # b", ["a", "#", "b"]),
        ("\u00e9 \u65e5\u672c", ["\u00e9", "\u65e5\u672c"]),
    ],
)
def test_a_command_is_split_like_a_shell_would_and_never_expanded(
    text: str, words: list[str] | None
) -> None:
    assert container_of(short(command=text)).get("command") == words
    assert container_of(short(args=text)).get("args") == words


@pytest.mark.parametrize(
    ("fields", "pointer", "detail", "hint"),
    [
        ({"command": 'a "b'}, "/command", "No closing quotation", "close the quotes"),
        ({"args": "a \\"}, "/args", "No escaped character", "close the quotes"),
        ({"command": {}}, "/command", "a list belongs here", "write a list"),
        ({"args": ["a", 1.5]}, "/args/1", "a text belongs here", 'quotes: "1.5"'),
        ({"env": {"A": 1.5}}, "/env/A", "a text belongs here", 'quotes: "1.5"'),
        ({"env": {"A": []}}, "/env/A", "a text belongs here", "write a text"),
        ({"env": "A=1"}, "/env", "a mapping belongs here", "write a mapping"),
        ({"env": {"A B": "1"}}, "/env/0/name", "without '='", "give the name"),
        ({"workers": MAX_WORKERS + 1}, "/workers", "between 0 and 9999", "range"),
        ({"workers": 1.5}, "/workers", "a whole number", "write a whole number"),
        ({"workers": "$N"}, "/workers", "a whole number", "unexpanded"),
        ({"nproc_per_node": 1025}, "/nproc_per_node", "between 1 and 1024", "range"),
        ({"nproc_per_node": True}, "/nproc_per_node", "a whole number", "whole number"),
        ({"nproc_per_node": 1.5}, "/nproc_per_node", "a text", "quotes"),
        ({"nproc-per-node": 0}, "/nproc_per_node", "between 1 and 1024", "range"),
        ({"image": None}, "/image", "a job needs an image", "or a manifest"),
        ({"image": "  "}, "/image", "a job needs an image", "or a manifest"),
        ({"image": 5}, "/image", "a text belongs here", "quotes"),
        ({"resources": {"gpu": ""}}, "requests/nvidia.com~1gpu", "is empty", "left unset"),
        ({"resources": {"gpu": "half"}}, "nvidia.com~1gpu", "not a quantity", "write a number"),
        ({"resources": {"cpus": 1}}, "/resources/cpus", "no resource", "did you mean 'cpu'?"),
        ({"resources": {"GPU": 1}}, "/resources/GPU", "no resource", "did you mean 'gpu'?"),
        ({"resources": {"disk": 1}}, "/resources/disk", "no resource", "a full resource name"),
        ({"resources": {"memory": None}}, "/resources/memory", "an amount", "give a value"),
        ({"resources": "gpu"}, "/resources", "a mapping", "write a mapping"),
        ({"replicas": 2}, "/replicas", "no field", "workers: Worker pods beside one Master"),
        ({"gpu": 1}, "/gpu", "no field", "write resources: {gpu: N}"),
        ({"memory": "1Gi"}, "/memory", "no field", "write resources: {memory: N}"),
        ({"Image": "a"}, "/Image", "no field", "did you mean 'image'?"),
        ({"zzz": 1}, "/zzz", "no field", "or give a PyTorchJob manifest"),
        ({"name": "Job"}, "/metadata/name", "services", "did you mean 'job'?"),
        ({"namespace": "A"}, "/metadata/namespace", "DNS label", "lower case"),
        ({"labels": ["a"]}, "/labels", "a mapping", "write a mapping"),
    ],
)
def test_a_wrong_field_of_the_short_form_is_refused_with_its_place(
    fields: dict[str, Any], pointer: str, detail: str, hint: str
) -> None:
    error = refusal(**fields)
    assert type(error) is InvalidInput
    assert error.pointer.endswith(pointer)
    assert detail in error.detail
    assert hint in error.hint


@pytest.mark.parametrize("key", ["gpu_share", "gpu-memory", "rdma_share", "vf", "mig-1g.5gb"])
def test_parts_of_devices_are_told_not_to_be_built(key: str) -> None:
    error = refusal(resources={key: 1})
    assert (type(error), error.pointer) == (NotSupportedYet, f"/resources/{key}")
    assert error.allowed == ("cpu", "memory", "gpu", "rdma")


def test_dashes_and_underscores_are_one_spelling_of_a_field() -> None:
    dashed = read_job(short(**{"nproc-per-node": 4, "start-timeout-seconds": 60}))
    assert dashed == read_job(short(nproc_per_node=4, start_timeout_seconds=60))
    assert dashed.manifest["spec"]["nprocPerNode"] == "4"
    error = refusal_of(short(**{"nproc-per-node": 4, "nproc_per_node": 8}))
    assert (error.pointer, error.hint) == ("/nproc_per_node", "say it in one place only")
    assert (
        read_with(short(**{"nproc-per-node": 4}), nproc_per_node=8).manifest["spec"]["nprocPerNode"]
        == "8"
    )


def test_a_dashed_field_beside_a_manifest_is_refused_like_any_other() -> None:
    error = refusal_of({"manifest": a_manifest(), "nproc-per-node": 4})
    assert (error.pointer, error.detail) == (
        "/nproc_per_node",
        "/nproc_per_node: nproc_per_node stands beside a manifest",
    )


@pytest.mark.parametrize("field", ["image", "command", "args", "env", "workers", "resources"])
def test_no_part_of_the_template_is_overridden_beside_a_manifest(field: str) -> None:
    for document in (a_manifest(), {"manifest": a_manifest()}):
        error = refusal_of(document, ReadOptions(overrides={field: "x"}))
        assert error.pointer == f"/{field}"
        assert error.hint == "change it in the manifest, or use the short form"


@pytest.mark.parametrize(
    ("document", "overrides", "field", "expected"),
    [
        (short(image="a"), {"image": "b"}, "image", "b"),
        (short(command="a"), {"command": ["b"]}, "command", ["b"]),
        (short(args="a"), {"args": "b c"}, "args", ["b", "c"]),
        (short(env={"A": "1"}), {"env": {"A": "2"}}, "env", [{"name": "A", "value": "2"}]),
        (short(env={"A": "1"}), {"env": [{"name": "B"}]}, "env", [{"name": "B"}]),
        (short(env=[{"name": "B"}]), {"env": {"A": 1}}, "env", [{"name": "A", "value": "1"}]),
        (
            short(resources={"cpu": 1, "memory": "1Gi"}),
            {"resources": {"cpu": "2"}},
            "resources",
            {"requests": {"cpu": "2", "memory": "1Gi"}},
        ),
    ],
)
def test_an_override_replaces_a_field_and_merges_maps(
    document: dict[str, Any], overrides: dict[str, Any], field: str, expected: object
) -> None:
    manifest = read_with(document, **overrides).manifest
    template = manifest["spec"]["pytorchReplicaSpecs"]["Master"]["template"]
    assert template["spec"]["containers"][0][field] == expected


def test_a_short_form_without_a_name_can_be_given_one() -> None:
    assert read_with({"image": "a"}, name="given").name == "given"
    assert read_with(a_manifest(metadata={"name": None}), name="given").name == "given"
    assert refusal_of({"image": "a"}).hint == "give metadata.name"


def test_a_variable_without_a_value_is_an_empty_one() -> None:
    assert container_of(short(env={"A": None}))["env"] == [{"name": "A", "value": ""}]


def test_every_field_that_is_allowed_is_told_once() -> None:
    error = refusal(zzz=1)
    assert error.allowed == KEYS
    assert len(set(KEYS)) == len(KEYS)
    assert {"name", "image", "queue", "devices", "manifest"} <= set(KEYS)
