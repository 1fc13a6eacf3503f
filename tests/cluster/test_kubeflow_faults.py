"""Trouble on the real thing: refusals, lost rights, a dead API server, a dead operator, poison."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gateway.backends.base import ReplicaPhase
from gateway.backends.kubeflow.doctor import examine
from gateway.errors import ClusterRejected, ClusterUnreachable
from tests.cluster.harness.cluster import Cluster
from tests.cluster.harness.control_plane import ControlPlane
from tests.cluster.kubeflow_world import MACHINE, World, bind
from tests.contract.backends.harness import Kind
from tests.contract.backends.launches import a_manifest
from tests.contract.backends.steps import Run

BOUND_SECONDS = 6.0


@pytest.fixture
def world(
    cluster: Cluster, namespace: str, make_nodes: Callable[..., list[str]], tmp_path: Path
) -> World:
    """Give a namespace and two machines of a known type."""
    return World(cluster, namespace, make_nodes(2, MACHINE), tmp_path)


@pytest.fixture
def without_api_server(world: World, control_plane: ControlPlane) -> Iterator[World]:
    """Give a world whose API server can be stopped; it runs again afterwards."""
    yield world
    control_plane.start_api_server()


@pytest.fixture
def without_operator(world: World) -> Iterator[World]:
    """Give a world whose training operator is down, and its webhook with it."""
    world.cluster.operator.stop()
    yield world
    world.cluster.operator.start()


def unreachable_within(call: Callable[[], object]) -> ClusterUnreachable:
    begun = time.monotonic()
    with pytest.raises(ClusterUnreachable) as caught:
        call()
    assert time.monotonic() - begun < BOUND_SECONDS
    return caught.value


def test_a_field_that_the_cluster_would_drop_is_refused_by_name(world: World) -> None:
    manifest = a_manifest()
    template = manifest["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]
    template["spec"]["gpuTopologyOfTomorrow"] = "ring"
    launch = world.launch_of(manifest)

    with pytest.raises(ClusterRejected, match="gpuTopologyOfTomorrow"):
        world.make_backend().create(launch)
    assert world.uid_in_cluster(launch) is None


def test_the_webhooks_own_words_reach_the_user(world: World) -> None:
    launch = world.launch(Kind.REJECTED)

    with pytest.raises(ClusterRejected, match="pytorch") as caught:
        world.make_backend().create(launch)
    assert "manifest" in caught.value.hint


def test_a_right_taken_away_is_named_and_given_back_all_goes_on(world: World) -> None:
    run = Run(world, world.launch_of(a_manifest(0)))
    run.start()
    other = world.launch_of(a_manifest(0))
    world.cluster.rest.delete(world.role_binding)

    def is_refused() -> bool:
        try:
            run.backend.create(other)
        except ClusterRejected as error:
            return 'cannot create resource "pytorchjobs"' in error.detail
        return False

    world.wait_until(is_refused, "the create to be refused")
    assert "get pytorchjobs" in unreachable_within(run.seen).detail
    with pytest.raises(ClusterRejected, match="get pytorchjobs"):
        run.backend.find(other)

    bind(world.cluster, world.namespace)
    world.wait_until(lambda: _can(run.seen), "the right to be back")
    world.wait_until(lambda: _can(lambda: run.backend.create(other)), "the create to work")


def _can(call: Callable[[], object]) -> bool:
    try:
        call()
    except (ClusterUnreachable, ClusterRejected):
        return False
    return True


def test_a_dead_api_server_is_told_within_the_bound_and_survived(
    without_api_server: World, control_plane: ControlPlane
) -> None:
    world = without_api_server
    run = Run(world, world.launch_of(a_manifest(1)))
    run.start()
    other = world.launch_of(a_manifest(1))
    control_plane.stop_api_server()

    assert not run.backend.is_reachable()
    for call in (
        run.seen,
        run.backend.inventory,
        lambda: run.backend.create(other),
        lambda: run.backend.open_gates(run.launch, run.ref),
        lambda: run.backend.stop(run.launch, run.ref),
        lambda: run.backend.logs(run.launch, 0, follow=True, tail=None),
    ):
        unreachable_within(call)

    control_plane.start_api_server()
    world.wait_until(lambda: _can(run.seen), "the cluster to answer")
    assert set(run.phases()) == {ReplicaPhase.READY}
    world.wait_until(lambda: _can(lambda: run.backend.create(other)), "the other to be created")


def test_while_the_operator_is_down_creating_waits_and_stopping_works(
    world: World, request: pytest.FixtureRequest
) -> None:
    run = Run(world, world.launch_of(a_manifest(1)))
    run.start()
    other = world.launch_of(a_manifest(0))
    request.getfixturevalue("without_operator")

    assert "webhook" in unreachable_within(lambda: run.backend.create(other)).detail
    run.backend.stop(run.launch, run.ref)
    run.wait_for_gone()
    world.wait_until(lambda: not run.seen().exists, "the object to go")


def test_malformed_labels_and_annotations_stop_neither_watching_nor_opening(
    world: World,
) -> None:
    launch = world.launch_of(a_manifest(1))
    run = Run(world, launch)
    run.unsuspend()
    run.wait_for_gated()
    poison = {
        "training-gateway.io/devices": "gpu:x:{{",
        "training-gateway.io/recreated": ",,\u2028,",
    }
    rest = world.cluster.rest
    rest.merge_patch(world.job_path(launch), {"metadata": {"annotations": poison}})
    rest.merge_patch(world.pod_path(launch, 1), {"metadata": {"annotations": poison}})

    run.open()
    run.wait_for_started()
    pod = world.pod(launch, 1)
    assert pod["metadata"]["annotations"]["training-gateway.io/devices"] != "gpu:x:{{"

    labels = {"training.kubeflow.org/replica-index": "one"}
    rest.merge_patch(world.pod_path(launch, 1), {"metadata": {"labels": labels}})
    assert not run.seen().are_pods_gone
    assert len(run.seen().replicas) >= 2


def test_a_pod_that_will_not_die_is_reported_and_not_forced(world: World) -> None:
    launch = world.launch(Kind.LONG)
    run = Run(world, launch)
    run.start()
    for pod in world.pods(launch):
        path = f"/api/v1/namespaces/{world.namespace}/pods/{pod['metadata']['name']}"
        world.cluster.rest.merge_patch(path, {"metadata": {"finalizers": ["example.org/stuck"]}})
    world.cluster.kubelet.lose_node(launch.pods[1].node)

    run.backend.stop(launch, run.ref)
    world.wait_until(lambda: ReplicaPhase.TERMINATING in run.phases(), "a pod to be stuck")
    world.pass_time()
    run.backend.stop(launch, run.ref)
    assert not run.seen().are_pods_gone

    world.cluster.kubelet.restore_node(launch.pods[1].node)
    run.wait_for_gone()
    for pod in world.pods(launch):
        path = f"/api/v1/namespaces/{world.namespace}/pods/{pod['metadata']['name']}"
        world.cluster.rest.merge_patch(path, {"metadata": {"finalizers": None}})


def test_the_doctor_finds_nothing_with_the_shipped_roles_and_names_each_missing_right(
    world: World,
) -> None:
    found = examine(world.kubeconfig, (world.namespace,))
    assert [check for check in found if not check.ok] == []
    assert len(found) == 12

    world.cluster.rest.delete(world.role_binding)
    names = {f"create pytorchjobs.kubeflow.org in {world.namespace}"}

    def bad() -> set[str]:
        return {c.name for c in examine(world.kubeconfig, (world.namespace,)) if not c.ok}

    world.wait_until(lambda: names <= bad(), "the doctor to see it")
    assert f"patch pods in {world.namespace}" in bad()
    assert "list nodes" not in bad()
