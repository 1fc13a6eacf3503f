"""What the fleet looks like: health, devices from the best source, and what others take."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.backends.base import NodeSeen
from gateway.backends.kubeflow.inventory import nodes_seen
from gateway.backends.kubeflow.json_paths import Json
from gateway.backends.virtual_fleet import virtual_fleet
from gateway.core.vocabulary import DeviceHealth, DeviceKind
from tests.contract.backends.launches import a_launch
from tests.unit.backends.kubeflow.a_cluster import a_pod
from tests.unit.backends.kubeflow.test_observation import anything

GPU, RDMA = DeviceKind.GPU, DeviceKind.RDMA


def a_node(name: str = "n1", **changes: Any) -> Json:
    node: Json = {
        "metadata": {"name": name, "uid": f"uid-{name}", "labels": {}, "annotations": {}},
        "spec": {},
        "status": {
            "conditions": [{"type": "Ready", "status": "True"}],
            "allocatable": {"cpu": "7500m", "memory": "1Gi", "pods": "110", "nvidia.com/gpu": "8"},
        },
    }
    for path, value in changes.items():
        holder, _, key = path.partition("__")
        node[holder][key] = value
    return node


def on(node: str, requests: dict[str, str], **spec: Any) -> Json:
    container = {"name": "main", "resources": {"requests": requests}}
    return {
        "metadata": {"name": "foreign", "namespace": "other"},
        "spec": {"nodeName": node, "containers": [container], **spec},
        "status": {"phase": "Running"},
    }


def one(node: Json, *pods: Json) -> NodeSeen:
    [found] = nodes_seen([node], pods)
    return found


def foreign(found: NodeSeen) -> dict[DeviceKind, bool]:
    return {kind: all(d.is_foreign for d in found.devices if d.kind is kind) for kind in DeviceKind}


def test_amounts_are_in_base_units_and_devices_are_not_among_them() -> None:
    node = a_node()
    node["status"]["allocatable"] |= {"rdma/hca": "8", "example.org/dongle": "3"}

    found = one(node)

    total = {"cpu": 7500, "memory": 2**30, "pods": 110, "example.org/dongle": 3}
    assert found.total == total
    assert [d.kind for d in found.devices] == [GPU] * 8 + [RDMA] * 8


def test_health_is_read_from_readiness_first_and_then_from_the_cordon() -> None:
    not_ready = [{"type": "Ready", "status": "Unknown"}]
    assert one(a_node()).health is DeviceHealth.HEALTHY
    assert one(a_node(spec__unschedulable=True)).health is DeviceHealth.CORDONED
    broken = a_node(spec__unschedulable=True, status__conditions=not_ready)
    assert one(broken).health is DeviceHealth.UNHEALTHY


def test_taints_that_only_repeat_the_health_are_left_out() -> None:
    taints = [
        {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"},
        {"key": "gpu", "value": "yes", "effect": "NoSchedule"},
    ]
    assert one(a_node(spec__taints=taints)).taints == (("gpu", "yes", "NoSchedule"),)


def test_a_known_machine_type_brings_its_topology() -> None:
    [expected] = virtual_fleet("1xdgx-h100")
    labels = {"training-gateway.io/machine-type": "dgx-h100"}

    found = one(a_node("dgx-h100-0", metadata__labels=labels))

    assert found.machine_type == "dgx-h100"
    assert found.devices == expected.devices


def test_the_topology_annotation_wins_over_the_machine_type() -> None:
    topology = [
        {"kind": "gpu", "ordinal": 0, "uuid": "GPU-1", "pci": "0000:1b:00.0", "switch": 3},
        {"kind": "rdma", "ordinal": 0, "name": "mlx5_7", "numa": 1, "rail": 2},
    ]
    labels = {"training-gateway.io/machine-type": "dgx-h100"}
    annotations = {"training-gateway.io/topology": json.dumps(topology)}

    gpu, nic = one(a_node(metadata__labels=labels, metadata__annotations=annotations)).devices

    assert (gpu.uuid, gpu.pci_address, gpu.switch, gpu.numa) == ("GPU-1", "0000:1b:00.0", 3, -1)
    assert (nic.name, nic.numa, nic.rail) == ("mlx5_7", 1, 2)


@pytest.mark.parametrize(
    "written",
    [
        "not json",
        "{}",
        "[1]",
        '[{"kind": "gpu"}]',
        '[{"kind": "gpu", "ordinal": -1}]',
        '[{"kind": "tpu", "ordinal": 0}]',
        '[{"kind": "gpu", "ordinal": 0}, {"kind": "gpu", "ordinal": 0}]',
        "[" * 100_000,
    ],
)
def test_a_malformed_topology_is_set_aside_as_a_whole(written: str) -> None:
    annotations = {"training-gateway.io/topology": written}

    assert len(one(a_node(metadata__annotations=annotations)).devices) == 8


def test_gpus_that_the_device_plugin_does_not_report_are_unhealthy() -> None:
    labels = {"training-gateway.io/machine-type": "dgx-h100"}
    node = a_node(metadata__labels=labels)
    node["status"]["allocatable"]["nvidia.com/gpu"] = "6"

    devices = one(node).devices

    healthy = [d.ordinal for d in devices if d.kind is GPU and d.health is DeviceHealth.HEALTHY]
    assert healthy == [0, 1, 2, 3, 4, 5]
    assert all(d.health is DeviceHealth.HEALTHY for d in devices if d.kind is RDMA)


def test_a_shared_rdma_resource_says_nothing_about_the_number_of_nics() -> None:
    node = a_node()
    node["status"]["allocatable"]["rdma/hca_shared"] = "1000"

    assert all(device.kind is GPU for device in one(node).devices)


def test_a_foreign_pod_takes_amounts_and_with_a_gpu_every_device_of_its_node() -> None:
    node = a_node()
    node["status"]["allocatable"]["rdma/hca"] = "2"

    plain = one(node, on("n1", {"cpu": "2"}), on("n2", {"nvidia.com/gpu": "1"}))
    assert plain.foreign == {"pods": 1, "cpu": 2000}
    assert foreign(plain) == {GPU: False, RDMA: False}

    assert foreign(one(node, on("n1", {"nvidia.com/gpu": "1"}))) == {GPU: True, RDMA: True}
    assert foreign(one(node, on("n1", {"rdma/hca": "1"}))) == {GPU: False, RDMA: True}


def test_effective_requests_count_init_containers_sidecars_and_overhead() -> None:
    init = [
        {"restartPolicy": "Always", "resources": {"requests": {"cpu": "1"}}},
        {"resources": {"limits": {"cpu": "5"}}},
    ]
    pod = on("n1", {"cpu": "2"}, initContainers=init, overhead={"cpu": "250m"})

    assert one(a_node(), pod).foreign["cpu"] == 6250


def test_own_pods_are_not_foreign_and_a_borrowed_label_does_not_help() -> None:
    pod = on_node_of_gateway()
    assert one(a_node(), pod).foreign == {}

    pod["metadata"]["ownerReferences"] = [{"kind": "ReplicaSet", "uid": "x"}]
    assert one(a_node(), pod).foreign["pods"] == 1


def on_node_of_gateway() -> Json:
    pod = a_pod(a_launch(), 0, "own")
    pod["metadata"]["labels"]["training-gateway.io/job-id"] = "j"
    pod["spec"]["nodeName"] = "n1"
    return pod


def test_pods_that_ended_take_nothing() -> None:
    pod = on("n1", {"nvidia.com/gpu": "1"})
    pod["status"]["phase"] = "Succeeded"

    assert foreign(one(a_node(), pod))[GPU] is False


@given(anything, anything, anything)
def test_malformed_nodes_and_pods_never_raise(first: Any, second: Any, third: Any) -> None:
    nodes = [
        {"metadata": first, "spec": second, "status": third},
        a_node(status__allocatable=first),
    ]
    pods = [{"metadata": second, "spec": first}, on("n1", first, initContainers=second)]

    assert len(nodes_seen(nodes, pods)) == 2


@given(st.text(max_size=6))
def test_no_text_is_too_odd_for_a_quantity(text: str) -> None:
    assert one(a_node(status__allocatable={"cpu": text})).total["cpu"] >= 0
