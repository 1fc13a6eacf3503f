"""Fixtures of the cluster tier: one cluster a session, namespaces and nodes of their own a test.

A cluster that cannot be built or started fails the tests; only SKIP_CLUSTER=1 skips them.
"""

import os
import secrets
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cluster.gateway_fixtures import make_site, make_world, world
from tests.cluster.harness.cluster import Cluster
from tests.cluster.harness.control_plane import ControlPlane
from tests.cluster.harness.fake_kubelet import FakeKubelet
from tests.cluster.harness.nodes import NodeShape

__all__ = ["make_site", "make_world", "world"]
FOLDER = Path(__file__).parent
BUILD_AND_START_SECONDS = 1800


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let the first test of the tier wait for a cold build; skip loudly when told to."""
    ours = [item for item in items if FOLDER in item.path.parents]
    if ours:
        ours[0].add_marker(pytest.mark.timeout(BUILD_AND_START_SECONDS))
    if ours and os.environ.get("SKIP_CLUSTER") == "1":
        print(f"\n!!! SKIP_CLUSTER=1: {len(ours)} cluster tests do NOT run", file=sys.__stderr__)
        for item in ours:
            item.add_marker(pytest.mark.skip(reason="SKIP_CLUSTER=1"))


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """Give the running cluster: control plane, training-operator, fake kubelet."""
    with Cluster() as running:
        yield running


@pytest.fixture(scope="session")
def control_plane(cluster: Cluster) -> ControlPlane:
    """Give the control plane of the running cluster."""
    return cluster.plane


@pytest.fixture
def namespace(cluster: Cluster) -> Iterator[str]:
    """Give a namespace of this test's own; its pods are gone afterwards."""
    name = cluster.add_namespace()
    yield name
    # A script that keeps pods Terminating must not outlive its test.
    cluster.kubelet.reset()
    cluster.remove_namespace(name)


@pytest.fixture
def fake_kubelet(cluster: Cluster) -> Iterator[FakeKubelet]:
    """Give the kubelet of all nodes, without scripts of earlier tests."""
    cluster.kubelet.reset()
    yield cluster.kubelet
    cluster.kubelet.reset()


@pytest.fixture
def make_nodes(cluster: Cluster) -> Iterator[Callable[..., list[str]]]:
    """Give a function that adds nodes of one shape; they are removed afterwards."""
    made: list[str] = []

    def add(count: int = 1, shape: NodeShape | None = None) -> list[str]:
        names = [f"node-{secrets.token_hex(3)}-{index}" for index in range(count)]
        made.extend(names)
        cluster.add_nodes(*names, shape=shape)
        return names

    yield add
    cluster.remove_nodes(*made)


@pytest.fixture
def nodes(make_nodes: Callable[..., list[str]]) -> list[str]:
    """Give the names of three nodes with eight GPUs and eight NICs each."""
    return make_nodes(3)
