"""What a pod is told of its reservation, and the machines that plans are made of."""

import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.backends.base import (
    GONE_PHASES,
    Launch,
    Observation,
    PlannedDevice,
    PlannedPod,
    ReplicaPhase,
    ReplicaSeen,
)
from gateway.backends.environment import ANNOTATIONS, plan_annotations, plan_environment
from gateway.backends.machine_catalogue import machine, machine_names
from gateway.backends.virtual_fleet import MOST_NODES, virtual_fleet
from gateway.core.vocabulary import DeviceHealth, DeviceKind
from gateway.errors import InvalidInput
from tests.contract.backends.launches import a_launch

GPU, RDMA = DeviceKind.GPU, DeviceKind.RDMA
LAUNCH = a_launch()


def device(kind: DeviceKind, ordinal: int, **more: Any) -> PlannedDevice:
    return PlannedDevice(kind=kind, ordinal=ordinal, name=f"{kind}{ordinal}", **more)


def told(*devices: PlannedDevice, launch: Launch = LAUNCH, **pod: Any) -> dict[str, str]:
    """Give the annotations without their prefix."""
    planned = PlannedPod(
        **{"pod_set": "Worker", "index": 1, "rank": 2, "node": "n1", "devices": devices, **pod}
    )
    prefix = "training-gateway.io/"
    return {
        key.removeprefix(prefix): value for key, value in plan_annotations(launch, planned).items()
    }


@pytest.mark.parametrize(
    ("devices", "gpus", "nics", "all_of_them"),
    [
        ((), "", "", ""),
        ((device(GPU, 0),), "gpu0", "", "gpu:0:gpu0"),
        ((device(GPU, 3, uuid="GPU-3"),), "GPU-3", "", "gpu:3:GPU-3"),
        ((device(RDMA, 1),), "", "rdma1", "rdma:1:rdma1"),
        ((device(RDMA, 1, uuid="unused"),), "", "rdma1", "rdma:1:unused"),
        (
            (device(GPU, 1, uuid="GPU-b"), device(RDMA, 0), device(GPU, 0, uuid="GPU-a")),
            "GPU-b,GPU-a",
            "rdma0",
            "gpu:1:GPU-b,rdma:0:rdma0,gpu:0:GPU-a",
        ),
    ],
)
def test_devices_are_told_in_the_order_of_the_plan(
    devices: tuple[PlannedDevice, ...], gpus: str, nics: str, all_of_them: str
) -> None:
    found = told(*devices)

    assert (found["gpus"], found["nics"], found["devices"]) == (gpus, nics, all_of_them)


def test_a_pod_is_told_its_job_attempt_rank_and_node() -> None:
    found = told(launch=replace(LAUNCH, attempt=3, job_id="job-x"), rank=12, node="n-7")

    assert {key: found[key] for key in ("job-id", "attempt", "rank", "node")} == {
        "job-id": "job-x",
        "attempt": "3",
        "rank": "12",
        "node": "n-7",
    }


@given(st.integers(0, 99), st.text(max_size=8), st.lists(st.integers(0, 7), unique=True))
def test_the_environment_says_what_the_annotations_say(
    rank: int, node: str, ordinals: list[int]
) -> None:
    pod = PlannedPod(
        pod_set="Worker",
        index=rank,
        rank=rank,
        node=node,
        devices=tuple(device(GPU, ordinal) for ordinal in ordinals),
    )
    annotations, environment = plan_annotations(LAUNCH, pod), plan_environment(LAUNCH, pod)

    assert list(annotations.values()) == [
        environment[f"TRAINING_GATEWAY_{suffix}"]
        for key in annotations
        for suffix, name in ANNOTATIONS.items()
        if key == f"training-gateway.io/{name}"
    ]
    assert len(environment) == len(annotations) == len(ANNOTATIONS)


def test_every_annotation_is_a_legal_key_and_every_variable_a_legal_name() -> None:
    pod = LAUNCH.pods[0]

    for key in plan_annotations(LAUNCH, pod):
        assert re.fullmatch(r"[a-z.-]{1,253}/[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?", key)
    for name in plan_environment(LAUNCH, pod):
        assert re.fullmatch(r"TRAINING_GATEWAY_[A-Z_]+", name)


@pytest.mark.parametrize("phase", list(ReplicaPhase))
def test_one_replica_that_may_use_a_device_keeps_them_all(phase: ReplicaPhase) -> None:
    replicas = tuple(
        ReplicaSeen(pod_set="Worker", index=index, phase=each)
        for index, each in enumerate([*sorted(GONE_PHASES), phase])
    )

    assert Observation(exists=True, replicas=replicas).are_pods_gone is (phase in GONE_PHASES)


def test_what_never_came_to_be_holds_nothing() -> None:
    assert Observation(exists=False).are_pods_gone
    assert {ReplicaPhase.TERMINATING, ReplicaPhase.GATED}.isdisjoint(GONE_PHASES)


@pytest.mark.parametrize("name", machine_names())
def test_devices_of_two_nodes_differ_in_their_gpus_ids_alone(name: str) -> None:
    kind = machine(name)
    first, second = kind.devices_of("n1"), kind.devices_of("n2")

    assert kind.devices_of("n1") == first
    for one, other in zip(first, second, strict=True):
        assert (one.uuid != other.uuid) is (one.kind is GPU)
        assert replace(one, uuid="") == replace(other, uuid="")
        assert one.health is DeviceHealth.HEALTHY


@pytest.mark.parametrize("name", machine_names())
def test_a_machine_has_places_that_agree_with_each_other(name: str) -> None:
    devices = machine(name).devices
    numa_of_switch = {each.switch: each.numa for each in devices}

    on_switches = [each for each in devices if each.switch >= 0]
    assert all(numa_of_switch[each.switch] == each.numa for each in on_switches)
    assert all(
        re.fullmatch(r"([0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[01])?", d.pci_address)
        for d in devices
    )
    names = [each.name for each in devices]
    assert len(set(names)) == len(names)
    rails = {each.rail for each in devices if each.kind is GPU and each.rail >= 0}
    assert rails <= {each.rail for each in devices if each.kind is RDMA}


@pytest.mark.parametrize("name", ["", "DGX-H100", "dgx-h100 ", "h100", "dgx"])
def test_an_unknown_machine_is_told_with_all_known_ones(name: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        machine(name)

    assert caught.value.detail == f"machine type {name!r} is not in the catalogue"
    assert caught.value.allowed == machine_names()
    assert caught.value.value == name


def test_the_catalogue_cannot_be_changed_by_who_reads_it() -> None:
    kind: Any = machine("cpu")

    with pytest.raises(TypeError):
        kind.total["cpu"] = 1
    with pytest.raises(TypeError):
        kind.labels["a"] = "b"


counts = st.lists(
    st.tuples(st.sampled_from(machine_names()), st.integers(1, 3)), min_size=1, max_size=4
)


@given(counts)
def test_a_fleet_has_as_many_nodes_of_each_machine_as_its_parts_say(
    parts: list[tuple[str, int]],
) -> None:
    fleet = virtual_fleet(",".join(f"{count}x{name}" for name, count in parts))

    for name in machine_names():
        wanted = sum(count for each, count in parts if each == name)
        found = [node.name for node in fleet if node.machine_type == name]
        assert found == [f"{name}-{number}" for number in range(wanted)]
    assert len({node.uid for node in fleet}) == len(fleet)


@pytest.mark.parametrize(
    "text",
    [
        "٣xcpu",
        "1.5xcpu",
        "+1xcpu",
        "1Xcpu",
        "x cpu",
        "xcpu-",
        "1xcpu;1xcpu",
        "1000000xcpu",
        " ",
        ",",
        "cpu cpu",
    ],
)
def test_a_part_that_is_not_count_times_machine_is_quoted(text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        virtual_fleet(f"1xcpu,{text}")

    assert isinstance(caught.value.value, str)
    assert caught.value.value in text or caught.value.value.strip() == ""


@pytest.mark.parametrize("text", [f"{MOST_NODES}xcpu,1xcpu", "999999xcpu", "60000xcpu,60000xp5"])
def test_too_many_nodes_are_refused_before_any_is_made(text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        virtual_fleet(text)

    assert caught.value.detail == "a virtual fleet has at most 100000 nodes"
    assert caught.value.value == text


def test_a_node_carries_its_name_and_machine_as_labels() -> None:
    [node] = virtual_fleet("p4d")

    assert node.labels["kubernetes.io/hostname"] == node.name == "p4d-0"
    assert node.labels["training-gateway.io/machine-type"] == node.machine_type == "p4d"
    assert node.labels["node.kubernetes.io/instance-type"] == "p4d.24xlarge"
    assert node.health is DeviceHealth.HEALTHY
