"""Kills a gateway at a crash point and looks at what is left, before and after a restart.

For every back end: a caller brings the environment that the gateway runs in, two manifests and a
way to count objects. Nothing here helps the gateway along.
"""

import multiprocessing
import os
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import func, select

from gateway.core.vocabulary import ENVIRONMENT_PREFIX, JobState
from gateway.db.engine import Database, open_database
from gateway.db.migrations import upgrade
from gateway.db.tables import attempts, charges, device_grants, devices, jobs, node_amounts
from gateway.service.crash_points import CRASH_POINTS, VARIABLE
from tests.acceptance.crash.runner import run_with

CHILDREN = multiprocessing.get_context("forkserver")
"""Children are forked from a server that has done the imports, which spares two seconds each."""
CHILDREN.set_forkserver_preload(["tests.acceptance.crash.runner"])
CHILD_SECONDS = 120
STOPPING_POINTS = ("after_stop", "before_free", "in_free", "after_free")
"""Points passed when a running job is cancelled."""
SWEEP = [
    *[(point, JobState.SUCCEEDED) for point in CRASH_POINTS if point != "after_stop"],
    *[(point, JobState.CANCELLED) for point in STOPPING_POINTS],
]
"""Every crash point with the end of a job that passes it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """One gateway that can be started, killed and started again."""

    url: str
    """Its database; migrated by `prepare`."""
    environment: Mapping[str, str]
    """Settings by their name without prefix, in capitals."""
    manifests: Mapping[JobState, Path]
    """A short job for SUCCEEDED, a long one for CANCELLED."""
    count_created: Callable[[], int]
    """How many objects were ever created in the cluster."""

    def run(self, end: JobState, crash_at: str = "") -> int:
        """Run a gateway until its job has ended or it is killed; give the exit code."""
        arguments = (self._environment(crash_at), str(self.manifests[end]), end.value)
        child = CHILDREN.Process(target=run_with, args=arguments)
        child.start()
        child.join(CHILD_SECONDS)
        if child.exitcode is None:
            child.kill()
            raise AssertionError(f"the gateway hangs; it was to die at {crash_at or 'no point'}")
        return child.exitcode

    def _environment(self, crash_at: str) -> dict[str, str]:
        settings = {"DATABASE_URL": self.url, **self.environment}
        ours = {ENVIRONMENT_PREFIX + name: value for name, value in settings.items()}
        clean = {k: v for k, v in os.environ.items() if not k.startswith(ENVIRONMENT_PREFIX)}
        return {**clean, **ours, VARIABLE: crash_at}


def prepare(deployment: Deployment) -> None:
    """Bring the deployment's database to the schema."""
    upgrade(deployment.url)


def survive(deployment: Deployment, point: str, end: JobState) -> None:
    """Kill at a point, restart, and assert that the promises hold at both moments."""
    prepare(deployment)
    assert deployment.run(end, crash_at=point) == -signal.SIGKILL, f"{point} was not passed"
    database = open_database(deployment.url)
    try:
        assert_held_once_or_free(database)
        assert deployment.count_created() <= 1

        assert deployment.run(end) == 0, "the wanted state is reached without help"

        assert_held_once_or_free(database)
        assert_ended_in_one_attempt(database, end)
        assert_all_free(database)
        assert deployment.count_created() == 1
    finally:
        database.close()


def assert_held_once_or_free(database: Database) -> None:
    """Each device's missing units are exactly those of its live grants, at most one of them."""
    live = device_grants.c.is_live
    statement = (
        select(
            devices.c.units_total - devices.c.units_free,
            func.coalesce(func.sum(device_grants.c.units).filter(live), 0),
            func.count(device_grants.c.id).filter(live),
        )
        .select_from(devices.outerjoin(device_grants, device_grants.c.device_id == devices.c.id))
        .group_by(devices.c.id)
    )
    with database.read() as connection:
        for missing, granted, holders in connection.execute(statement):
            assert missing == granted
            assert holders <= 1


def assert_ended_in_one_attempt(database: Database, end: JobState) -> None:
    """One job, ended as wanted, on its first attempt."""
    with database.read() as connection:
        (job,) = connection.execute(select(jobs)).all()
        (attempt,) = connection.execute(select(attempts)).all()
    assert (job.state, job.attempt) == (end.value, 1)
    assert (attempt.number, attempt.phase) == (1, "closed")
    assert attempt.object_uid


def assert_all_free(database: Database) -> None:
    """Nothing is held, charged or taken."""
    counts = (
        select(func.count()).where(device_grants.c.is_live),
        select(func.count()).where(charges.c.is_live),
        select(func.count()).where(
            node_amounts.c.free != node_amounts.c.total - node_amounts.c.foreign_use
        ),
    )
    with database.read() as connection:
        assert [connection.execute(statement).scalar_one() for statement in counts] == [0, 0, 0]
