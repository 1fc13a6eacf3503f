"""Gangs on the real scheduler: bound exactly as reserved, and told exactly what is theirs."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gateway.backends.base import Launch, ReplicaPhase
from gateway.backends.environment import plan_annotations, plan_environment
from tests.cluster.harness.cluster import Cluster
from tests.cluster.kubeflow_world import ACCOUNT, MACHINE, World
from tests.contract.backends.launches import a_manifest
from tests.contract.backends.steps import Run

DEVICES = {"nvidia.com/gpu": "1", "rdma/hca": "1"}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


@pytest.fixture
def world(
    cluster: Cluster,
    namespace: str,
    make_nodes: Callable[..., list[str]],
    tmp_path: Path,
) -> World:
    """Give a namespace and three machines of a known type."""
    return World(cluster, namespace, make_nodes(3, MACHINE), tmp_path)


def templates(manifest: dict[str, Any]) -> list[dict[str, Any]]:
    return [r["template"] for r in manifest["spec"]["pytorchReplicaSpecs"].values()]


def on_other_nodes(launch: Launch) -> Launch:
    """Turn the plan round, so that no scheduler would come to it by itself."""
    nodes = [pod.node for pod in reversed(launch.pods)]
    pods = [replace(pod, node=node) for pod, node in zip(launch.pods, nodes, strict=True)]
    return replace(launch, pods=tuple(pods))


def test_a_gang_is_bound_exactly_as_planned(world: World) -> None:
    manifest = a_manifest(2, env={"NCCL_IB_HCA": "=$(TRAINING_GATEWAY_NICS)"})
    for template in templates(manifest):
        template["spec"]["containers"][0]["resources"] = {"limits": DEVICES}
    launch = on_other_nodes(world.launch_of(manifest))
    run = Run(world, launch)
    run.start()

    for planned in launch.pods:
        pod = world.pod(launch, planned.rank)
        annotations = plan_annotations(launch, planned)
        assert pod["spec"]["nodeName"] == planned.node
        assert annotations.items() <= pod["metadata"]["annotations"].items()
        assert annotations["training-gateway.io/gpus"].startswith("GPU-")
        assert annotations["training-gateway.io/nics"].startswith("mlx5_")
        assert dict(world.environment_of(launch, planned.rank)) == plan_environment(launch, planned)
        everything = world.cluster.kubelet.environment(
            world.namespace, world.pod_name(launch, planned.rank)
        )
        assert everything["NCCL_IB_HCA"] == f"={annotations['training-gateway.io/nics']}"
        [container] = pod["spec"]["containers"]
        assert container["resources"]["limits"] == DEVICES, "requests stay as they were written"
        assert pod["spec"]["priorityClassName"] == ACCOUNT
        assert pod["spec"]["preemptionPolicy"] == "Never"


def test_a_users_own_node_affinity_still_holds_beside_the_pin(world: World) -> None:
    terms = [
        {"matchExpressions": [{"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]}]},
        {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["nowhere"]}]},
    ]
    manifest = a_manifest(0)
    for template in templates(manifest):
        required = {REQUIRED: {"nodeSelectorTerms": terms}}
        template["spec"]["affinity"] = {"nodeAffinity": required}
    launch = on_other_nodes(world.launch_of(manifest))
    run = Run(world, launch)
    run.start()

    pod = world.pod(launch, 0)
    after = pod["spec"]["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]
    assert pod["spec"]["nodeName"] == launch.pods[0].node
    assert [term["matchExpressions"] for term in after] == [t["matchExpressions"] for t in terms]
    pins = [term["matchFields"][0]["values"] for term in after]
    assert pins == [[launch.pods[0].node]] * 2


def test_a_pod_carries_what_its_flavor_tolerates_to_a_node_that_keeps_others_out(
    world: World,
) -> None:
    manifest = a_manifest(1)
    own = {"key": "zone", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 3600}
    for template in templates(manifest):
        template["spec"]["tolerations"] = [own]
    launch = world.keep_out(world.launch_of(manifest))
    run = Run(world, launch)
    run.start()

    granted = {"key": "pool", "operator": "Equal", "value": "training", "effect": "NoSchedule"}
    for planned in launch.pods:
        spec = world.pod(launch, planned.rank)["spec"]
        assert spec["nodeName"] == planned.node
        assert [each for each in spec["tolerations"] if each in (own, granted)] == [own, granted]


def test_a_gang_on_kept_out_nodes_waits_for_ever_without_its_flavors_tolerations(
    world: World,
) -> None:
    tolerating = world.keep_out(world.launch_of(a_manifest(0)))
    pods = tuple(replace(pod, tolerations=()) for pod in tolerating.pods)
    run = Run(world, replace(tolerating, pods=pods))
    run.unsuspend()
    run.open()
    world.pass_time()

    assert run.seen().replicas[0].phase is ReplicaPhase.PENDING
    assert not world.has_started(run.launch)


def test_a_replica_beyond_the_plan_stays_gated(world: World) -> None:
    launch = world.launch_of(a_manifest(1))
    run = Run(world, launch)
    run.start()

    world.cluster.rest.merge_patch(
        world.job_path(launch), {"spec": {"pytorchReplicaSpecs": {"Worker": {"replicas": 2}}}}
    )
    world.wait_until(lambda: len(run.seen().replicas) == 3, "a third replica")

    assert run.backend.open_gates(launch, run.ref)
    world.pass_time()
    surplus = run.seen().replicas[-1]
    assert (surplus.pod_set, surplus.index, surplus.phase) == ("Worker", 1, ReplicaPhase.GATED)


def test_a_pod_that_a_stranger_opened_is_named_as_a_violation(world: World) -> None:
    launch = world.launch_of(a_manifest(0))
    run = Run(world, launch)
    run.unsuspend()
    run.wait_for_gated()
    taint = {"key": "keep-out", "value": "", "effect": "NoSchedule"}
    planned = launch.pods[0].node
    world.cluster.rest.merge_patch(f"/api/v1/nodes/{planned}", {"spec": {"taints": [taint]}})

    world.cluster.rest.merge_patch(world.pod_path(launch, 0), {"spec": {"schedulingGates": None}})
    world.wait_until(lambda: bool(run.seen().replicas[0].node), "the pod to be bound")

    stray = run.seen()
    assert stray.replicas[0].node != planned
    assert stray.message == f"Master 0 is on node {stray.replicas[0].node}, reserved is {planned}"
    assert not stray.are_pods_gone


def test_a_gang_of_unlike_machines_is_told_its_own_devices_only(world: World) -> None:
    launch = world.launch_of(a_manifest(2))
    run = Run(world, launch)
    run.start()

    seen = {
        value
        for pod in launch.pods
        for value in world.environment_of(launch, pod.rank)["TRAINING_GATEWAY_GPUS"].split(",")
    }
    assert seen == {device.uuid for pod in launch.pods for device in pod.devices if device.uuid}
    assert len(seen) == 3, "every replica has a GPU of its own"
