"""Devices of a node, from its annotation, its machine type or mere counts."""

import json
from dataclasses import fields
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.backends.base import DeviceSeen
from gateway.backends.kubeflow.devices import (
    MOST_DEVICES,
    MOST_WHOLE_NICS,
    devices_of,
    machine_type_of,
)
from gateway.backends.kubeflow.json_paths import Json
from gateway.core.vocabulary import DeviceHealth, DeviceKind
from tests.unit.backends.kubeflow.test_observation import anything

GPU, RDMA = DeviceKind.GPU, DeviceKind.RDMA
TYPE, TOPOLOGY = "training-gateway.io/machine-type", "training-gateway.io/topology"
INSTANCE = "node.kubernetes.io/instance-type"
GPUS = {"nvidia.com/gpu": 8}


def a_node(topology: object = None, **labels: str) -> Json:
    annotations = {} if topology is None else {TOPOLOGY: json.dumps(topology)}
    return {"metadata": {"name": "n1", "labels": labels, "annotations": annotations}}


def one(entry: object) -> DeviceSeen:
    [device] = devices_of(a_node([entry]), GPUS)
    return device


def is_set_aside(topology: object) -> bool:
    """Whether the counts were taken in the annotation's place."""
    found = devices_of(a_node(topology), GPUS)
    return [device.name for device in found] == [f"nvidia{number}" for number in range(8)]


@pytest.mark.parametrize(
    ("labels", "machine_type"),
    [
        ({TYPE: "dgx-h100", INSTANCE: "p5.48xlarge"}, "dgx-h100"),
        ({INSTANCE: "p5.48xlarge"}, "p5.48xlarge"),
        ({TYPE: "", INSTANCE: "p5.48xlarge"}, "p5.48xlarge"),
        ({}, ""),
    ],
)
def test_our_own_label_names_the_machine_before_the_clouds(
    labels: dict[str, str], machine_type: str
) -> None:
    assert machine_type_of(a_node(**labels)) == machine_type


def test_a_clouds_instance_type_brings_the_topology_of_its_machine() -> None:
    found = devices_of(a_node(**{INSTANCE: "p4d.24xlarge"}), GPUS)

    places = [(each.kind, each.switch) for each in found]
    assert places == [(GPU, i // 2) for i in range(8)] + [(RDMA, i) for i in range(4)]


def test_a_type_that_the_catalogue_does_not_know_leaves_the_counts() -> None:
    found = devices_of(a_node(**{TYPE: "elsewhere", INSTANCE: "p4d.24xlarge"}), GPUS)

    assert {(each.kind, each.switch) for each in found} == {(GPU, -1)}


def test_a_written_device_is_taken_field_by_field() -> None:
    entry = {
        "kind": "gpu",
        "ordinal": 3,
        "name": "nvidia3",
        "uuid": "GPU-3",
        "pci": "0000:61:00.0",
        "switch": 3,
        "numa": 0,
        "rail": 4,
        "nvlink": 1,
    }

    assert one(entry) == DeviceSeen(
        kind=GPU,
        ordinal=3,
        name="nvidia3",
        uuid="GPU-3",
        pci_address="0000:61:00.0",
        switch=3,
        numa=0,
        rail=4,
        nvlink_group=1,
    )


def test_a_device_that_says_little_has_a_name_and_nothing_else() -> None:
    device = one({"kind": "rdma", "ordinal": 2})

    assert device == DeviceSeen(kind=RDMA, ordinal=2, name="rdma2")
    assert {field.name for field in fields(DeviceSeen)} >= {"switch", "numa", "rail"}


@pytest.mark.parametrize("key", ["switch", "numa", "rail", "nvlink"])
@pytest.mark.parametrize("value", [-1, 2**15, 10**30, "3", 1.5, True, None, [], {}])
def test_a_place_that_makes_no_sense_is_unknown_and_the_device_stays(
    key: str, value: object
) -> None:
    device = one({"kind": "gpu", "ordinal": 0, key: value})

    assert getattr(device, {"nvlink": "nvlink_group"}.get(key, key)) == -1


@pytest.mark.parametrize("key", ["name", "uuid", "pci"])
@pytest.mark.parametrize("value", [3, None, [], {}, True])
def test_a_text_that_is_none_is_as_good_as_missing(key: str, value: object) -> None:
    assert one({"kind": "gpu", "ordinal": 0, key: value}) == one({"kind": "gpu", "ordinal": 0})


@pytest.mark.parametrize("ordinal", [-1, MOST_DEVICES, "0", 0.0, True, None, [], 10**30])
def test_one_device_without_a_usable_ordinal_sets_the_whole_list_aside(ordinal: object) -> None:
    good = {"kind": "gpu", "ordinal": 1}

    assert is_set_aside([good, {"kind": "gpu", "ordinal": ordinal}])


@pytest.mark.parametrize("kind", ["GPU", "tpu", "", None, 3, []])
def test_one_device_of_an_unknown_kind_sets_the_whole_list_aside(kind: object) -> None:
    assert is_set_aside([{"kind": "gpu", "ordinal": 1}, {"kind": kind, "ordinal": 0}])


def test_two_devices_of_one_ordinal_are_a_mistake_unless_their_kinds_differ() -> None:
    gpu, nic = {"kind": "gpu", "ordinal": 0}, {"kind": "rdma", "ordinal": 0}

    assert is_set_aside([gpu, nic, gpu])
    assert [device.kind for device in devices_of(a_node([gpu, nic]), GPUS)] == [GPU, RDMA]


def test_more_devices_than_any_machine_has_are_a_mistake() -> None:
    many = [{"kind": "rdma", "ordinal": number % MOST_DEVICES} for number in range(300)]

    assert is_set_aside(many)
    most = [{"kind": "rdma", "ordinal": number} for number in range(MOST_DEVICES)]
    assert len(devices_of(a_node(most), GPUS)) == MOST_DEVICES


@pytest.mark.parametrize("topology", [[], {}, "text", 3, None, [[]], [3]])
def test_a_list_that_is_empty_or_none_leaves_the_counts(topology: object) -> None:
    assert is_set_aside(topology)


@pytest.mark.parametrize(("reported", "healthy"), [(0, 0), (1, 1), (7, 7), (8, 8), (100, 8)])
def test_as_many_gpus_are_healthy_as_the_device_plugin_reports(reported: int, healthy: int) -> None:
    found = devices_of(a_node(**{TYPE: "dgx-h100"}), {"nvidia.com/gpu": reported})
    states = [device.health for device in found if device.kind is GPU]

    assert states == [DeviceHealth.HEALTHY] * healthy + [DeviceHealth.UNHEALTHY] * (8 - healthy)
    nics = {device.health for device in found if device.kind is RDMA}
    assert nics == {DeviceHealth.HEALTHY}, "nobody reports which NICs are broken"


@pytest.mark.parametrize(
    ("allocatable", "gpus", "nics"),
    [
        ({}, 0, 0),
        ({"nvidia.com/gpu": 4}, 4, 0),
        ({"rdma/hca": 2}, 0, 2),
        ({"rdma/hca": 2, "rdma/roce": 3}, 0, 5),
        ({"rdma/hca": MOST_WHOLE_NICS}, 0, MOST_WHOLE_NICS),
        ({"rdma/hca": MOST_WHOLE_NICS + 1}, 0, 0),
        ({"rdma/shared": 1000, "rdma/hca": 2}, 0, 2),
        ({"nvidia.com/gpu": 10**6}, MOST_DEVICES, 0),
        ({"cpu": 64, "example.org/dongle": 3}, 0, 0),
    ],
)
def test_mere_counts_give_that_many_devices_without_a_place(
    allocatable: dict[str, int], gpus: int, nics: int
) -> None:
    found = devices_of(a_node(), allocatable)

    assert [d.name for d in found if d.kind is GPU] == [f"nvidia{n}" for n in range(gpus)]
    assert [d.name for d in found if d.kind is RDMA] == [f"rdma{n}" for n in range(nics)]
    assert {(d.switch, d.numa, d.rail, d.uuid) for d in found} <= {(-1, -1, -1, "")}


def test_an_instance_type_of_the_cloud_brings_no_topology() -> None:
    found = devices_of(a_node(**{INSTANCE: "dgx-h100"}), GPUS)

    assert {device.switch for device in found} == {-1}


@given(st.lists(anything, max_size=3))
def test_no_annotation_raises_and_ordinals_are_never_doubled(entries: list[Any]) -> None:
    found = devices_of(a_node(entries), GPUS)

    names = [(device.kind, device.ordinal) for device in found]
    assert len(names) == len(set(names))
