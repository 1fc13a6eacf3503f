"""The fleet as the back end lists it from a real API server, with the shipped rights only."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gateway.backends.base import NodeSeen
from gateway.core.vocabulary import DeviceHealth, DeviceKind
from tests.cluster.harness.cluster import Cluster
from tests.cluster.kubeflow_world import MACHINE, World
from tests.contract.backends.launches import a_manifest
from tests.contract.backends.steps import Run


@pytest.fixture
def world(
    cluster: Cluster, namespace: str, make_nodes: Callable[..., list[str]], tmp_path: Path
) -> World:
    """Give a namespace and one machine of a known type."""
    return World(cluster, namespace, make_nodes(1, MACHINE), tmp_path)


def machine(world: World) -> NodeSeen:
    [found] = world.fleet()
    return found


def node_path(world: World) -> str:
    return f"/api/v1/nodes/{world.node_names[0]}"


def foreign_kinds(world: World) -> set[DeviceKind]:
    return {device.kind for device in machine(world).devices if device.is_foreign}


def a_foreign_pod(world: World, limits: dict[str, str]) -> str:
    """Create somebody's pod on the machine and give its path."""
    container: dict[str, Any] = {"name": "main", "image": "i", "resources": {"limits": limits}}
    pods = f"/api/v1/namespaces/{world.namespace}/pods"
    world.cluster.rest.create(
        pods,
        {
            "metadata": {"name": "somebodys"},
            "spec": {"containers": [container], "nodeName": world.node_names[0]},
        },
    )
    return f"{pods}/somebodys"


def test_a_machine_is_listed_with_its_amounts_and_topology(world: World) -> None:
    found = machine(world)

    assert found.health is DeviceHealth.HEALTHY
    assert found.machine_type == "dgx-h100"
    assert (found.total["cpu"], found.total["memory"], found.total["pods"]) == (
        128_000,
        2**40,
        110,
    )
    assert not {name for name in found.total if "gpu" in name or "rdma" in name}
    assert [device.kind for device in found.devices] == [DeviceKind.GPU] * 8 + [DeviceKind.RDMA] * 8
    assert all(device.switch >= 0 for device in found.devices)


def test_a_cordoned_machine_is_shown_as_such_and_comes_back(world: World) -> None:
    world.cluster.rest.merge_patch(node_path(world), {"spec": {"unschedulable": True}})
    world.wait_until(lambda: machine(world).health is DeviceHealth.CORDONED, "the cordon")
    world.pass_time()
    assert machine(world).taints == (), "the cordon's taint is no second cause"

    world.cluster.rest.merge_patch(node_path(world), {"spec": {"unschedulable": None}})
    world.wait_until(lambda: machine(world).health is DeviceHealth.HEALTHY, "the machine")


def test_a_foreign_pod_with_a_gpu_takes_the_whole_machine_until_it_goes(world: World) -> None:
    assert foreign_kinds(world) == set()

    pod = a_foreign_pod(world, {"nvidia.com/gpu": "1", "cpu": "3"})
    assert foreign_kinds(world) == {DeviceKind.GPU, DeviceKind.RDMA}
    assert machine(world).foreign == {"cpu": 3000, "pods": 1}

    world.cluster.rest.delete(pod)
    world.wait_until(lambda: foreign_kinds(world) == set(), "the devices to be free again")


def test_the_gateways_own_pods_are_not_foreign(world: World) -> None:
    run = Run(world, world.launch_of(a_manifest(0)))
    run.start()

    assert machine(world).foreign == {}
    assert foreign_kinds(world) == set()


def test_devices_that_the_kubelet_takes_back_are_unhealthy(world: World) -> None:
    world.cluster.rest.merge_patch(
        f"{node_path(world)}/status", {"status": {"allocatable": {"nvidia.com/gpu": "7"}}}
    )

    broken = [d for d in machine(world).devices if d.health is DeviceHealth.UNHEALTHY]
    assert [(device.kind, device.ordinal) for device in broken] == [(DeviceKind.GPU, 7)]
