"""A pod's effective requests follow kube-scheduler's arithmetic."""

from typing import Any

import pytest

from gateway.manifests import ReadOptions, read_job
from tests.unit.manifests.building import CONTAINER, a_container, a_manifest, master_of, refusal_of


def asking(kind: str = "requests", **amounts: Any) -> dict[str, Any]:
    return {"resources": {kind: amounts}}


def an_init(name: str, cpu: int, **fields: Any) -> dict[str, Any]:
    return {**a_container(name=name, **asking(cpu=cpu)), **fields}


@pytest.mark.parametrize(
    ("inits", "cpu"),
    [
        ([], 2000),
        ([an_init("a", 1)], 2000),
        ([an_init("a", 5)], 5000),
        ([an_init("a", 5), an_init("b", 4)], 5000),
        ([an_init("a", 1, restartPolicy="Always")], 3000),
        ([an_init("a", 4, restartPolicy="Always")], 6000),
        ([an_init("a", 1, restartPolicy="Always"), an_init("b", 5)], 6000),
        ([an_init("a", 5), an_init("b", 1, restartPolicy="Always")], 5000),
        (
            [
                an_init("a", 1, restartPolicy="Always"),
                an_init("b", 2, restartPolicy="Always"),
                an_init("c", 3),
            ],
            6000,
        ),
        ([an_init("a", 3, restartPolicy="OnFailure")], 3000),
    ],
)
def test_init_containers_count_by_their_largest_and_sidecars_add(
    inits: list[dict[str, Any]], cpu: int
) -> None:
    document = a_manifest(asking(cpu=2), pod={"initContainers": inits})
    assert master_of(document).per_pod["cpu"] == cpu


def test_limits_stand_in_for_missing_requests_one_by_one() -> None:
    resources = {"requests": {"cpu": 1}, "limits": {"cpu": 4, "memory": "1Gi", "nvidia.com/gpu": 2}}
    pod = master_of(a_manifest({"resources": resources}))
    assert pod.per_pod == {"cpu": 1000, "memory": 2**30, "gpu": 2}


def test_workers_beside_a_master_carry_the_operators_init_container() -> None:
    _, worker = read_job(a_manifest(asking(cpu="20m", memory="1Mi"), workers=1)).pod_sets
    assert worker.per_pod == {"cpu": 50, "memory": 10 * 2**20}
    _, worker = read_job(a_manifest(asking(cpu=1, memory="1Gi"), workers=1)).pod_sets
    assert worker.per_pod == {"cpu": 1000, "memory": 2**30}


def test_the_operators_init_container_starts_beside_sidecars() -> None:
    sidecar = an_init("log", 1, restartPolicy="Always")
    _, worker = read_job(a_manifest(pod={"initContainers": [sidecar]}, workers=1)).pod_sets
    assert worker.per_pod["cpu"] == 1050


def test_overhead_adds_and_pod_level_requests_replace_the_sum() -> None:
    pod = {"overhead": {"cpu": "250m"}, "resources": {"requests": {"cpu": 3}}}
    assert master_of(a_manifest(asking(cpu=1), pod=pod)).per_pod == {"cpu": 3250}


def test_pod_level_limits_count_only_where_no_container_asks() -> None:
    pod = {"resources": {"limits": {"cpu": 8, "memory": "8Gi"}}}
    read = master_of(a_manifest(asking(cpu=1), pod=pod))
    assert read.per_pod == {"cpu": 1000, "memory": 8 * 2**30}


@pytest.mark.parametrize(
    ("name", "counted"),
    [
        ("nvidia.com/gpu", "gpu"),
        ("amd.com/gpu", "gpu"),
        ("rdma/hca_shared", "rdma"),
        ("nvidia.com/roce_gdr", "rdma"),
        ("nvidia.com/hostdev", "rdma"),
        ("openshift.io/mlnxnics", "rdma"),
        ("mellanox.com/cx7", "rdma"),
        ("vpc.amazonaws.com/efa", "rdma"),
        ("aws.amazon.com/neuron", "aws.amazon.com/neuron"),
        ("habana.ai/gaudi", "habana.ai/gaudi"),
        ("hugepages-2Mi", "hugepages-2Mi"),
    ],
)
def test_devices_are_counted_under_one_name(name: str, counted: str) -> None:
    assert master_of(a_manifest(asking("limits", **{name: 2}))).per_pod == {counted: 2}


def test_rdma_names_are_a_setting_and_several_add_up() -> None:
    document = a_manifest(asking("limits", **{"example.com/nic-a": 1, "example.com/nic-b": 2}))
    options = ReadOptions(rdma_resource_names=("example.com/nic-*",))
    assert master_of(document, options).per_pod == {"rdma": 3}


def test_node_local_disk_is_checked_but_not_counted() -> None:
    assert master_of(a_manifest(asking("limits", **{"ephemeral-storage": "1Gi"}))).per_pod == {}
    error = refusal_of(a_manifest(asking("limits", **{"ephemeral-storage": "1Gib"})))
    assert error.pointer == f"{CONTAINER}/resources/limits/ephemeral-storage"


def test_two_kinds_of_gpu_in_one_container_are_refused() -> None:
    error = refusal_of(a_manifest(asking("limits", **{"nvidia.com/gpu": 1, "amd.com/gpu": 1})))
    assert "one kind of GPU" in error.detail


def test_devices_are_asked_for_in_containers_only() -> None:
    error = refusal_of(a_manifest(pod={"resources": {"limits": {"nvidia.com/gpu": 1}}}))
    assert error.pointer.endswith("/template/spec/resources/limits/nvidia.com~1gpu")


def test_fractions_are_stored_as_text_for_the_cluster_takes_no_other() -> None:
    spec = read_job(a_manifest(asking(cpu=0.5)))
    containers = spec.manifest["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"]
    assert containers["containers"][0]["resources"]["requests"]["cpu"] == "0.5"
