"""A whole gateway without threads: a database, a virtual cluster and a clock that tests move.

`World` makes the passes that the ticker would make, by hand and in order.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import func, select

from gateway.backends.simulated import ManualClock, SimulatedBackend
from gateway.backends.virtual_fleet import virtual_fleet
from gateway.core.admission import CyclePlan
from gateway.core.vocabulary import JobState, PairRule, Role
from gateway.db import attempts as attempt_rows
from gateway.db import jobs as job_rows
from gateway.db.engine import Database, Row
from gateway.db.reasons import get_class_hold
from gateway.db.tables import attempts, charges, devices, node_amounts
from gateway.schemas.job_spec import JobSpec, PodSet
from gateway.schemas.views import JobDetail
from gateway.service.context import Caller, Gateway, Leadership, MirrorState
from gateway.service.cycle import run_cycle
from gateway.service.inventory import sync
from gateway.service.jobs import get_job, job_attempts, job_events
from gateway.service.launching import launch_due
from gateway.service.leading import keep_leading
from gateway.service.reconciling import reconcile_due
from gateway.service.submit import submit
from gateway.settings import Settings

START_SECONDS = 1_800_000_000.0
GIB = 2**30
ADMIN = Caller(name="root", role=Role.ADMIN, namespaces=("*",))
ANNA = Caller(name="anna", namespaces=("team-a",))
BEN = Caller(name="ben", namespaces=("team-b",))
MOST_TURNS = 90
Between = Callable[[Callable[[CyclePlan], object]], None]
"""Lets something happen once, after the next plan is made and before it is committed."""


def a_spec(name: str = "train", gpu: int = 8, workers: int = 0, **changes: Any) -> JobSpec:
    """Give a job of a Master and Workers, each with this many GPUs and as many NICs.

    `script` (outcome, run-seconds, ...) is what the virtual cluster does with it.
    """
    script: Mapping[str, object] = changes.pop("script", {})
    pair = changes.pop("pair", PairRule.SWITCH)
    counts = {"Master": 1} | ({"Worker": workers} if workers else {})
    per_pod = {"cpu": 4000, "memory": 16 * GIB, "gpu": gpu, "rdma": gpu}
    manifest = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {
            "name": name,
            "annotations": {
                f"simulated.training-gateway.io/{key}": str(value) for key, value in script.items()
            },
        },
        "spec": {"pytorchReplicaSpecs": {kind: {"replicas": n} for kind, n in counts.items()}},
    }
    values: dict[str, Any] = {
        "name": name,
        "namespace": "team-a",
        "manifest": manifest,
        "pod_sets": tuple(
            PodSet.model_validate({"name": kind, "count": count, "per_pod": per_pod, "pair": pair})
            for kind, count in counts.items()
        ),
    }
    return JobSpec(**{**values, **changes})


class GatewayClock:
    """The gateway's view of a manual clock."""

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock

    def now_us(self) -> int:
        """Give microseconds since the epoch."""
        return int(self._clock() * 1_000_000)


@dataclass(slots=True)
class World:
    """One gateway that leads, on two nodes of eight GPUs and eight NICs."""

    gateway: Gateway
    cluster: SimulatedBackend
    clock: ManualClock

    def submit(self, spec: JobSpec | None = None, caller: Caller = ANNA, **asks: Any) -> str:
        """Submit a job and give its id."""
        return submit(self.gateway, caller, spec or a_spec(**asks), None).job.id

    def turn(self, seconds: float = 1.0) -> None:
        """Let time pass, then decide, launch and look once."""
        self.clock.advance(seconds)
        run_cycle(self.gateway)
        launch_due(self.gateway)
        reconcile_due(self.gateway)

    def decide(self) -> None:
        """Make one cycle and nothing else."""
        run_cycle(self.gateway)

    def read_fleet(self) -> None:
        """Let the gateway see what the cluster's nodes have come to."""
        sync(self.gateway)

    def until(self, job_id: str, *states: JobState) -> JobDetail:
        """Take turns until a job is in one of these states."""
        for _ in range(MOST_TURNS):
            if self.state(job_id) in states:
                return self.job(job_id)
            self.turn()
        raise AssertionError(f"{self.job(job_id)} never came to {states}")

    def job(self, job_id: str) -> JobDetail:
        """Give a job as an admin sees it."""
        return get_job(self.gateway, ADMIN, job_id)

    def state(self, job_id: str) -> JobState:
        """Give a job's state."""
        return self.job(job_id).state

    def job_row(self, job_id: str) -> Row:
        """Give a job's row."""
        with self.gateway.database.read() as connection:
            row = job_rows.get_job(connection, job_id)
        assert row is not None
        return row

    def class_hold(self, job_id: str) -> Row:
        """Give what is stored of why jobs like this one wait."""
        job = self.job_row(job_id)
        with self.gateway.database.read() as connection:
            row = get_class_hold(connection, job["queue"], job["class_id"])
        assert row is not None
        return row

    def attempt(self, job_id: str) -> Row:
        """Give the row of a job's newest attempt."""
        with self.gateway.database.read() as connection:
            return attempt_rows.attempts_of(connection, self.job_row(job_id)["id"])[-1]

    def kinds(self, job_id: str) -> list[str]:
        """Give the kinds of a job's events, oldest first."""
        return [event.kind for event in job_events(self.gateway, ADMIN, job_id, 0, 500).items]

    def object_name(self, job_id: str) -> str:
        """Give the name of a job's newest object."""
        return job_attempts(self.gateway, ADMIN, job_id)[-1].object_name

    def held(self) -> int:
        """Count devices that are held, by whole units."""
        statement = select(func.sum((devices.c.units_total - devices.c.units_free) / 100))
        return int(self._scalar(statement) or 0)

    def is_idle(self) -> bool:
        """Whether nothing at all is held: devices, amounts, quota, attempts."""
        taken = select(func.count()).where(
            node_amounts.c.free != node_amounts.c.total - node_amounts.c.foreign_use
        )
        charged = select(func.count()).where(charges.c.is_live)
        live = select(func.count()).where(attempts.c.phase != "closed")
        return not any([self.held(), *map(self._scalar, (taken, charged, live))])

    def objects(self) -> int:
        """Count objects in the virtual cluster."""
        with self.cluster._ledger.reading() as state:
            return len(state.objects)

    def write(self, statement: Any) -> None:
        """Change the database behind the gateway's back."""
        self.gateway.database.run_write(lambda writer: writer.connection.execute(statement))

    def _scalar(self, statement: Any) -> Any:
        with self.gateway.database.read() as connection:
            return connection.execute(statement).scalar_one()


def a_world(database: Database, fleet: str = "2xdgx-h100", **settings: Any) -> World:
    """Give a leading gateway whose fleet has been read."""
    clock = ManualClock(START_SECONDS)
    cluster = SimulatedBackend(virtual_fleet(fleet), clock=clock)
    gateway = Gateway(
        database=database,
        backend=cluster,
        settings=Settings(**settings),
        leadership=Leadership(holder="test"),
        clock=GatewayClock(clock),
    )
    assert keep_leading(gateway)
    sync(gateway)
    return World(gateway, cluster, clock)


def a_replica(world: World, holder: str = "other") -> Gateway:
    """Give a second gateway on the same database and cluster."""
    return replace(world.gateway, leadership=Leadership(holder=holder), mirror=MirrorState())
