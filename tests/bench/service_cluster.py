"""The open arrivals of `service`, with each job a PyTorchJob in a real API server.

One create by the gateway, under the rights that deploy/ ships, and one write of the status for each
job, as in Kueue's own test; there are no pods, no scheduler and no operator. API server and etcd
share the machine's cores with the server, the database and the clients. BENCH_SHARE and
BENCH_REPETITIONS are as in `service`.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from tests.bench import _cluster_server as server
from tests.bench._tenants import definitions_of
from tests.bench.decisions import BASELINE
from tests.bench.figures import Figure, repetitions
from tests.bench.service import Goal, Outcome, figures_of, measured
from tests.cluster.harness.cluster import Cluster
from tests.cluster.harness.control_plane import Flags
from tests.cluster.harness.training_operator import core
from tests.cluster.kubeflow_world import ACCOUNT, bind, install

PEER = "v0.17.0 on two cores: 388 s, 295 s with its client limits raised; preemption on"
GOAL = Goal(150, None, 388, PEER)
PAGE = "500"


def run() -> Iterator[Figure]:
    """Give the figures."""
    share = float(os.environ.get("BENCH_SHARE", "1"))
    runs = [_measured(share) for _ in range(repetitions(1))]
    yield from figures_of(runs, GOAL, "_cluster")


def _measured(share: float) -> Outcome:
    with _cluster() as cluster:
        plane = cluster.plane
        kubeconfig = plane.folder / "gateway.kubeconfig"
        more = {
            server.KUBECONFIG: str(plane.kubeconfig_for_account(ACCOUNT, ACCOUNT, kubeconfig)),
            server.API_SERVER: plane.url,
            server.CA: str(plane.ca_path),
            server.TOKEN: plane.admin_token,
        }
        outcome = measured(share, server.__name__, more)
        found = succeeded_in(cluster)
    if found != outcome.jobs:
        raise RuntimeError(f"{found} PyTorchJobs succeeded, {outcome.jobs} jobs did")
    return outcome


@contextmanager
def _cluster() -> Iterator[Cluster]:
    """Give an API server that knows PyTorchJobs, with the gateway's rights and the namespaces."""
    cluster = Cluster(flags=Flags(has_loops=False))
    try:
        cluster.plane.start()
        cluster.operator.install_crd()
        install(cluster)
        for queue in definitions_of(BASELINE).queues:
            cluster.rest.create("/api/v1/namespaces", core("Namespace", queue.name))
            bind(cluster, queue.name)
        yield cluster
    finally:
        cluster.plane.stop()


def succeeded_in(cluster: Cluster) -> int:
    """Give how many PyTorchJobs say that they succeeded."""
    found = 0
    query = {"limit": PAGE}
    while True:
        page = cluster.rest.get("/apis/kubeflow.org/v1/pytorchjobs", **query)
        statuses = [job.get("status") for job in page["items"]]
        found += statuses.count(server.SUCCEEDED["status"])
        if not page["metadata"].get("continue"):
            return found
        query["continue"] = page["metadata"]["continue"]
