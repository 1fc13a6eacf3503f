"""Fixtures of the tests that run a whole gateway beside the cluster; conftest.py names them."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cluster.gateway_world import GatewayWorld, Site, prepare_site, start_world
from tests.cluster.harness.cluster import Cluster
from tests.cluster.harness.fake_kubelet import FakeKubelet
from tests.cluster.harness.nodes import NodeShape
from tests.cluster.kubeflow_world import MACHINE

SiteMaker = Callable[..., Site]
WorldMaker = Callable[..., GatewayWorld]


@pytest.fixture
def make_site(
    cluster: Cluster,
    make_nodes: Callable[..., list[str]],
    namespace: str,
    fake_kubelet: FakeKubelet,
    tmp_path: Path,
) -> SiteMaker:
    """Give a function that adds nodes of one shape and gives the site with them."""

    def make(count: int = 1, shape: NodeShape = MACHINE) -> Site:
        return prepare_site(cluster, namespace, make_nodes(count, shape), tmp_path)

    return make


@pytest.fixture
def make_world(make_site: SiteMaker, tmp_path: Path) -> Iterator[WorldMaker]:
    """Give a function that starts a gateway on a database, at a site with new nodes."""
    started: list[GatewayWorld] = []

    def make(url: str, count: int = 1, shape: NodeShape = MACHINE) -> GatewayWorld:
        world = start_world(make_site(count, shape), url, tmp_path)
        started.append(world)
        return world

    yield make
    for world in started:
        world.stop()


@pytest.fixture
def world(make_world: WorldMaker, sqlite_url: str) -> GatewayWorld:
    """Give a gateway on SQLite with one node of eight GPU-NIC pairs."""
    return make_world(sqlite_url)
