"""Kueue's baseline under open arrivals against a running server: 15,000 jobs over HTTP, PostgreSQL.

30 queues in five cohorts, three classes each, submitted by 90 loops at their own pace; a virtual
cluster in the server's memory runs each gang for its time. Wall time is from the first due arrival
to the last end in the database; the work alone takes 66 s. Turnaround is how long quota lies idle
between a finish and the start that takes it up (see _turnaround). One run by default;
BENCH_REPETITIONS=5 makes five, BENCH_SHARE=0.2 a fifth of the jobs.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import psycopg

from gateway.core.vocabulary import ENVIRONMENT_PREFIX
from gateway.db.engine import open_database
from gateway.db.leases import release
from gateway.service.definitions import apply
from tests.bench._arrivals import BASELINE_PACES
from tests.bench._databases import fresh_databases
from tests.bench._server import LOG_VARIABLE
from tests.bench._tenants import ADMIN, a_gateway, cpu_nodes, definitions_of
from tests.bench._turnaround import Course, quantile, turnarounds
from tests.bench.decisions import BASELINE
from tests.bench.figures import Figure, median_figure, repetitions
from tests.bench.servers import NOTHING, Running, running_gateway

WALL_TARGET, TURNAROUND_TARGET = 80, 0.13
COHORT_CPUS = 120
DRAIN_SECONDS = 600
SERVER = "tests.bench._server"
LOOK_SECONDS = "0.05"
"""Pace at which the server looks at what runs: these jobs run for less than the usual second."""
RUNS = {pace.name: (pace.kind.cpu // 1_000, pace.runs) for pace in BASELINE_PACES}
PEER = "its authors' runs with an API server, 6 CPUs: 351 s; preemption on"
JOBS = "SELECT uid, name, queue, state, submitted_us, ended_us FROM jobs"


class Outcome(NamedTuple):
    """One run."""

    wall_seconds: float
    turnaround_p95: float
    cpu_seconds: float
    """Of the server's process, without the database and the client."""
    jobs: int


class Goal(NamedTuple):
    """What a run is held against; seconds."""

    wall: float
    turnaround: float | None
    peer_wall: float
    peer_source: str


GOAL = Goal(WALL_TARGET, TURNAROUND_TARGET, 351, PEER)


def run() -> Iterator[Figure]:
    """Give the figures."""
    share = float(os.environ.get("BENCH_SHARE", "1"))
    runs = [measured(share) for _ in range(repetitions(1))]
    yield from figures_of(runs, GOAL)


def figures_of(runs: list[Outcome], goal: Goal, part: str = "") -> Iterator[Figure]:
    """Give wall, turnaround and the server's processor time for each job."""
    yield median_figure(
        f"service.baseline{part}_seconds",
        [each.wall_seconds for each in runs],
        "s",
        target=goal.wall,
        higher_is_better=False,
        peer="Kueue",
        peer_value=goal.peer_wall,
        peer_source=goal.peer_source,
    )
    yield median_figure(
        f"service.turnaround{part}_p95_seconds",
        [each.turnaround_p95 for each in runs],
        "s",
        target=goal.turnaround,
        higher_is_better=False,
    )
    costs = [1_000 * each.cpu_seconds / each.jobs for each in runs]
    yield median_figure(f"service{part}.cpu_ms_per_job", costs, "ms", higher_is_better=False)


def measured(share: float, module: str = SERVER, more: Mapping[str, str] = NOTHING) -> Outcome:
    """Run once, with a share of each class's jobs; another server may be named."""
    with tempfile.TemporaryDirectory() as folder, fresh_databases("postgresql") as new_url:
        url, log = new_url(), Path(folder) / "starts.json"
        _prepare(url)
        settings = {LOG_VARIABLE: str(log), f"{ENVIRONMENT_PREFIX}LAUNCH_SECONDS": LOOK_SECONDS}
        with running_gateway(url, Path(folder), module, {**settings, **more}) as server:
            sent = _arrivals(server, share)
            _await_end(url)
        noted = json.loads(log.read_text(encoding="utf-8"))
        rows = _rows(url)
    return outcome_of(rows, noted, sent["started_at"])


def _prepare(url: str) -> None:
    gateway = a_gateway(url, cpu_nodes(0))
    try:
        apply(gateway, ADMIN, definitions_of(BASELINE))
    finally:
        gateway.database.close()
    # The server that follows must not wait for this one's lease to run out.
    database = open_database(url)
    release(database, "bench")
    database.close()


def _arrivals(server: Running, share: float) -> dict[str, Any]:
    queues = [queue.name for queue in definitions_of(BASELINE).queues]
    orders = {"port": server.port, "token": server.token, "queues": queues, "share": share}
    done = subprocess.run(
        [sys.executable, "-m", "tests.bench._arrivals"],
        input=json.dumps(orders),
        capture_output=True,
        text=True,
        check=True,
        timeout=DRAIN_SECONDS,
    )
    told: dict[str, Any] = json.loads(done.stdout)
    if set(told["statuses"]) != {"201"}:
        raise RuntimeError(f"submits were answered {told['statuses']}")
    return told


def _await_end(url: str) -> None:
    deadline = time.monotonic() + DRAIN_SECONDS
    with psycopg.connect(url, autocommit=True) as connection:
        while time.monotonic() < deadline:
            live = connection.execute("SELECT 1 FROM jobs WHERE ended_us IS NULL LIMIT 1")
            if live.fetchone() is None:
                return
            time.sleep(0.5)
    raise RuntimeError(f"jobs are left after {DRAIN_SECONDS} s")


def _rows(url: str) -> list[dict[str, Any]]:
    with psycopg.connect(url) as connection:
        cursor = connection.execute(JOBS)
        names = [column.name for column in cursor.description or ()]
        return [dict(zip(names, row, strict=True)) for row in cursor]


def outcome_of(rows: list[dict[str, Any]], noted: Mapping[str, Any], started_at: float) -> Outcome:
    """Give the figures of a run from its jobs' rows and the log of starts."""
    failed = [row["name"] for row in rows if row["state"] != "succeeded"]
    if failed:
        raise RuntimeError(f"{len(failed)} jobs did not succeed, {failed[0]} for one")
    courses = [_course(row, noted["opened"]) for row in rows]
    waits = turnarounds(courses, COHORT_CPUS)
    return Outcome(
        wall_seconds=max(row["ended_us"] for row in rows) / 1e6 - started_at,
        turnaround_p95=quantile(waits, 0.95),
        cpu_seconds=noted["cpu_seconds"],
        jobs=len(rows),
    )


def _course(row: Mapping[str, Any], opened: Mapping[str, float]) -> Course:
    cpus, runs = RUNS[row["name"].split("-")[0]]
    started = opened[f"{row['queue']}/{row['uid']}"]
    cohort = row["queue"].partition("cohort")[2]
    return Course(cohort, cpus, row["submitted_us"] / 1e6, started, started + runs)
