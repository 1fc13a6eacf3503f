"""A whole gateway beside the test cluster: service, database, ticker and the Kubeflow back end.

It acts with the ServiceAccount and roles that deploy/ ships. Tests submit and look; what moves the
jobs is the ticker alone. The tests' own eyes are a client of their own.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from sqlalchemy import func, select

from gateway.backends.kubeflow.names import pod_name
from gateway.bootstrap import build_gateway
from gateway.core.vocabulary import TERMINAL_STATES, BackendName, JobState, Role
from gateway.db.tables import attempts, devices
from gateway.manifests import read_jobs
from gateway.schemas.views import AssignmentView, AttemptView, ExplainView, JobDetail, JobView
from gateway.service.context import Caller, Gateway
from gateway.service.devices import list_nodes
from gateway.service.explaining import explain
from gateway.service.jobs import get_job, job_assignments, job_attempts
from gateway.service.submit import submit
from gateway.settings import Settings
from gateway.ticker import Ticker
from tests.acceptance.crash.sweep import assert_all_free, assert_held_once_or_free
from tests.cluster.harness.cluster import Cluster
from tests.cluster.harness.rest import JsonObject
from tests.cluster.harness.waiting import wait_until
from tests.cluster.kubeflow_world import ACCOUNT, bind, install
from tests.cluster.pytorch_jobs import jobs_path, pods_path

PREFIX = "training-gateway.io/"
ADMIN = Caller(name="root", role=Role.ADMIN, namespaces=("*",))
PATIENCE_SECONDS = 60.0
"""For one change of state on a machine that does much else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """Where a gateway works: a namespace, nodes, and credentials with the shipped rights only."""

    cluster: Cluster
    namespace: str
    nodes: Sequence[str]
    kubeconfig: Path
    role_binding: str
    """Path of the RoleBinding; deleting it takes the right to run jobs in the namespace."""


def prepare_site(cluster: Cluster, namespace: str, nodes: Sequence[str], folder: Path) -> Site:
    """Apply deploy/ and mint the shipped ServiceAccount's token by TokenRequest."""
    install(cluster)
    return Site(
        cluster=cluster,
        namespace=namespace,
        nodes=tuple(nodes),
        role_binding=bind(cluster, namespace),
        kubeconfig=cluster.plane.kubeconfig_for_account(
            ACCOUNT, ACCOUNT, folder / "gateway.kubeconfig"
        ),
    )


@dataclass(frozen=True, slots=True)
class GatewayWorld:
    """A running gateway at a site, and what a user, an admin and a kubelet see of it."""

    site: Site
    gateway: Gateway
    caller: Caller
    _ticker: Ticker = field(repr=False)

    def stop(self) -> None:
        """End the gateway gracefully."""
        self._ticker.stop()
        self.gateway.database.close()

    def submit(self, manifest: Mapping[str, Any]) -> str:
        """Submit a manifest as a user of the namespace and give the job's id."""
        [spec] = read_jobs(dict(manifest))
        job: JobView = submit(self.gateway, self.caller, spec, None).job
        return job.id

    def job(self, job_id: str) -> JobDetail:
        """Give a job."""
        return get_job(self.gateway, self.caller, job_id)

    def explain(self, job_id: str) -> ExplainView:
        """Give why a job waits or what became of it."""
        return explain(self.gateway, self.caller, job_id)

    def attempts(self, job_id: str) -> tuple[AttemptView, ...]:
        """Give a job's attempts."""
        return job_attempts(self.gateway, self.caller, job_id)

    def assignments(self, job_id: str) -> tuple[AssignmentView, ...]:
        """Give who of the job's newest attempt runs where, by rank."""
        found = job_assignments(self.gateway, self.caller, job_id, None)
        return tuple(sorted(found, key=lambda assignment: assignment.rank))

    def until(self, job_id: str, *states: JobState) -> JobDetail:
        """Wait until a job is in one of these states; another end fails at once."""

        def look() -> JobDetail | None:
            job = self.job(job_id)
            if job.state in states:
                return job
            assert job.state not in TERMINAL_STATES, f"{job.name}: {job.end_reason} {job.message}"
            return None

        what = f"job {self.job(job_id).name} to be {' or '.join(states)}"
        return wait_until(look, what, PATIENCE_SECONDS)

    def until_true(self, probe: Callable[[], object], what: str) -> None:
        """Wait for anything else."""
        wait_until(probe, what, PATIENCE_SECONDS)

    def object_name(self, job_id: str) -> str:
        """Give the name of a job's newest object."""
        return self.attempts(job_id)[-1].object_name

    def object(self, job_id: str) -> JsonObject | None:
        """Read the PyTorchJob of a job's newest attempt."""
        path = jobs_path(self.site.namespace, self.object_name(job_id))
        return self.site.cluster.rest.find(path)

    def pod_names(self, job_id: str) -> list[str]:
        """Give the names of the pods of a job by rank."""
        name = self.object_name(job_id)
        return [pod_name(name, each.pod_set, each.index) for each in self.assignments(job_id)]

    def pod(self, job_id: str, rank: int) -> JsonObject | None:
        """Read one pod of a job."""
        name = self.pod_names(job_id)[rank]
        return self.site.cluster.rest.find(pods_path(self.site.namespace, name))

    def finish(self, job_id: str, rank: int = 0, exit_code: int = 0) -> None:
        """Let one running replica end."""
        name = self.pod_names(job_id)[rank]
        self.site.cluster.kubelet.finish(self.site.namespace, name, exit_code)

    def live_pods(self, job_id: str) -> list[str]:
        """Give the names of the job's pods that may still use devices."""
        ended = {"Succeeded", "Failed"}
        found = [self.pod(job_id, rank) for rank in range(len(self.assignments(job_id)))]
        return [
            pod["metadata"]["name"] for pod in found if pod and pod["status"]["phase"] not in ended
        ]

    def held(self) -> int:
        """Count devices that are held."""
        statement = select(func.count()).where(devices.c.units_free < devices.c.units_total)
        with self.gateway.database.read() as connection:
            return int(connection.execute(statement).scalar_one())

    def assert_idle(self) -> None:
        """Nothing is held, charged or live."""
        assert_held_once_or_free(self.gateway.database)
        assert_all_free(self.gateway.database)
        assert self.held() == 0
        live = select(func.count()).where(attempts.c.phase != "closed")
        with self.gateway.database.read() as connection:
            assert connection.execute(live).scalar_one() == 0


def start_world(site: Site, url: str, folder: Path, **changes: Any) -> GatewayWorld:
    """Start a gateway on a migrated database and wait until it knows the site's nodes."""
    settings = Settings(
        state_dir=folder,
        database_url=url,
        backend=BackendName.KUBEFLOW,
        kubeconfig=site.kubeconfig,
        namespaces=(site.namespace,),
        pod_priority_class=ACCOUNT,
        cycle_seconds=0.5,
        launch_seconds=0.25,
        inventory_seconds=1.0,
        **changes,
    )
    gateway = build_gateway(settings)
    caller = Caller(name="anna", namespaces=(site.namespace,))
    world = GatewayWorld(site, gateway, caller, Ticker(gateway))
    world._ticker.start()
    try:
        world.until_true(partial(_knows, gateway, site.nodes), "the gateway to read the fleet")
    except BaseException:
        world.stop()
        raise
    return world


def _knows(gateway: Gateway, names: Sequence[str]) -> bool:
    return set(names) <= {node.name for node in list_nodes(gateway, ADMIN, "", 500).items}


def a_job(namespace: str, name: str = "train", workers: int = 1, **asks: Any) -> dict[str, Any]:
    """Give a manifest of a Master and Workers with GPU-NIC pairs under one switch each.

    Args:
        namespace: where it runs.
        name: its name.
        workers: how many beside the Master.
        asks: `gpus` and as many NICs per pod (default 1), `restart_policy` (default Never).
    """
    gpus = asks.pop("gpus", 1)
    restart_policy = asks.pop("restart_policy", "Never")
    assert not asks, f"unknown: {sorted(asks)}"
    container = {
        "name": "pytorch",
        "image": "registry.example/train:1",
        "resources": {
            "requests": {"cpu": "2", "memory": "4Gi"},
            "limits": {"nvidia.com/gpu": gpus, "rdma/hca": gpus},
        },
    }
    replica = {"restartPolicy": restart_policy, "template": {"spec": {"containers": [container]}}}
    sets = {"Master": {"replicas": 1, **replica}}
    if workers:
        sets["Worker"] = {"replicas": workers, **replica}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "annotations": {f"{PREFIX}pair": "switch"},
        },
        "spec": {"pytorchReplicaSpecs": sets},
    }
