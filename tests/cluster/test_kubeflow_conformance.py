"""The Kubeflow back end passes the conformance suite on a real control plane and operator."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.harness.cluster import Cluster
from tests.cluster.kubeflow_world import MACHINE, World
from tests.contract.backends.suite import LaunchBackendSuite

NODES = ("suite-node-0", "suite-node-1")


@pytest.fixture(scope="module")
def machines(cluster: Cluster) -> Iterator[tuple[str, ...]]:
    """Give two machines that all tests of the suite use one after the other."""
    cluster.add_nodes(*NODES, shape=MACHINE)
    yield NODES
    cluster.remove_nodes(*NODES)


@pytest.mark.usefixtures("fake_kubelet")
class TestKubeflow(LaunchBackendSuite):
    """Acts with the shipped ServiceAccount and roles only."""

    @pytest.fixture
    def harness(
        self, cluster: Cluster, namespace: str, machines: tuple[str, ...], tmp_path: Path
    ) -> Iterator[World]:
        """Give an empty namespace and nodes that keep nobody out."""
        world = World(cluster, namespace, machines, tmp_path)
        yield world
        world.let_in()
