"""A restart with a million waiting and 5,000 running: how long until the first right decision.

Beside it, in the same process and in turn, the raw read: fetchall of the same columns of the same
rows by the driver, with nothing made of them. One job that runs is ended beforehand, so that there
is exactly one gang to admit, and it must be the first of its queue. Then the memory of a whole
`gateway serve` over these jobs, over that of one that has none.
"""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import insert, text, update

from gateway.core.resources import CPU
from gateway.core.vocabulary import JobState
from gateway.db.engine import Writer
from gateway.db.jobs import intern_class
from gateway.db.tables import attempts, jobs
from gateway.schemas.definitions import CohortSpec, DefinitionSet, QueueSpec, QuotaSpec
from gateway.service.context import Gateway
from gateway.service.cycle import run_cycle
from gateway.service.definitions import apply
from tests.bench._databases import fresh_databases
from tests.bench._tenants import ADMIN, a_gateway, a_job_row, a_request, cpu_nodes
from tests.bench.figures import Figure, median_figure, repetitions
from tests.bench.servers import resident_kilobytes, running_gateway
from tests.builders import GIB

WAITING, RUNNING = 1_000_000, 5_000
QUEUES, CLASSES, CPU_MILLIS = 40, 50, 1_000
RATIO_TARGET, MEMORY_TARGET = 1.5, 260
SETTLE_SECONDS, QUIET_SECONDS = 90, 15
RAW = "same run: fetchall of the same columns of the same rows, by the driver"


class Start(NamedTuple):
    """Seconds of one restart: until the decision, and of the raw read before it."""

    decided: float
    read: float
    first: int
    """Row id of the job that was admitted first."""


def run() -> Iterator[Figure]:
    """Give the figures of both databases."""
    for kind in ("sqlite", "postgresql"):
        with fresh_databases(kind) as new_url:
            url, empty = new_url(), new_url()
            fill(url, WAITING)
            yield _memory(kind, url, empty)
            begin_running(url, RUNNING)
            yield from figures_of(kind, [_restarted(url) for _ in range(repetitions(5))])


def figures_of(kind: str, starts: list[Start]) -> Iterator[Figure]:
    """Give the ratio of each repetition and the seconds behind it."""
    suffix = "" if kind == "postgresql" else f"_{kind}"
    ratios = [each.decided / each.read for each in starts]
    yield median_figure(
        f"restart.ratio_to_raw_read{suffix}",
        ratios,
        "1",
        target=RATIO_TARGET,
        higher_is_better=False,
        peer="raw read",
        peer_value=1.0,
        peer_source=RAW,
    )
    seconds = [each.decided for each in starts]
    yield median_figure(f"restart.seconds{suffix}", seconds, "s", higher_is_better=False)


def fill(url: str, waiting: int) -> None:
    """Let jobs of all queues and classes wait; their queues have no quota yet."""
    gateway = a_gateway(url, cpu_nodes())
    try:
        _define(gateway, 0)
        gateway.database.run_write(lambda writer: _insert_jobs(writer, waiting))
    finally:
        gateway.database.close()


def _define(gateway: Gateway, nominal: int) -> None:
    # Nobody borrows: the queue whose gang ended is the only one that has room for another.
    quota = QuotaSpec(flavor="default", resource=CPU, nominal=nominal, borrowing_limit=0)
    queues = tuple(
        QueueSpec(name=f"queue-{number}", cohort="all", quotas=(quota,)) for number in range(QUEUES)
    )
    apply(gateway, ADMIN, DefinitionSet(cohorts=(CohortSpec(name="all"),), queues=queues))


def _insert_jobs(writer: Writer, count: int) -> None:
    # A queue's jobs all ask for as much, of different memory, so that the oldest is the right one.
    shapes = [a_request(CPU_MILLIS, GIB + number) for number in range(CLASSES)]
    first = min([intern_class(writer, shape) for shape in shapes])
    row = a_job_row(0, "queue-0", first, 0) | {"xact_id": writer.xact_id}
    writer.connection.execute(insert(jobs), [row])
    # One row becomes a million inside the database, which no client could bring as fast.
    varied = {
        "id": "n.i",
        "uid": "'00000000-0000-4000-' || CAST(100000000000000 + n.i AS text)",
        "name": "'job-' || CAST(n.i AS text)",
        "queue": f"'queue-' || CAST(n.i % {QUEUES} AS text)",
        "class_id": f"{first} + n.i % {CLASSES}",
        "user_name": "'user-' || CAST(n.i % 100 AS text)",
        "submitted_us": "n.i",
    }
    names = list(row)
    values = ", ".join(varied.get(name, f"jobs.{name}") for name in names)
    start = int(writer.connection.execute(text("SELECT max(id) FROM jobs")).scalar_one())
    statement = (
        "WITH RECURSIVE n(i) AS"  # noqa: S608 - own names
        f" (SELECT {start} + 1 UNION ALL SELECT i + 1 FROM n WHERE i < {start} + {count})"
        f" INSERT INTO jobs (id, {', '.join(names)})"
        f" SELECT n.i, {values} FROM n, jobs WHERE jobs.id = {start}"
    )
    writer.connection.execute(text(statement))


def begin_running(url: str, running: int) -> None:
    """Give the queues quota for so many, admit them and let them run."""
    gateway = a_gateway(url, cpu_nodes())
    try:
        _define(gateway, running // QUEUES * CPU_MILLIS)
        while (outcome := run_cycle(gateway)) and outcome.admitted:
            pass
        gateway.database.run_write(_run_all)
    finally:
        gateway.database.close()


def _run_all(writer: Writer) -> None:
    started = {"state": JobState.RUNNING, "xact_id": writer.xact_id}
    is_reserved = jobs.c.state == JobState.RESERVED
    writer.connection.execute(update(jobs).where(is_reserved).values(**started))
    writer.connection.execute(update(attempts).values(phase="open"))


def _restarted(url: str) -> Start:
    told = subprocess.run(
        [sys.executable, "-m", "tests.bench._restarting", url],
        check=True,
        capture_output=True,
        text=True,
    )
    start = Start(**json.loads(told.stdout))
    assert start.first, "nothing was admitted after the restart"
    return start


def _memory(kind: str, url: str, empty: str) -> Figure:
    suffix = "" if kind == "postgresql" else f"_{kind}"
    idle, full = _settled_kilobytes(empty), _settled_kilobytes(url)
    return median_figure(
        f"memory.serve_mb{suffix}",
        [(full - idle) / 1024],
        "MB",
        target=MEMORY_TARGET,
        higher_is_better=False,
        peer_source=f"over an idle server of {idle // 1024} MB",
    )


def _settled_kilobytes(url: str) -> int:
    """Give what a leader of this database holds once it has read and told everything."""
    with (
        tempfile.TemporaryDirectory() as folder,
        running_gateway(url, Path(folder)) as server,
    ):
        sizes = [resident_kilobytes(server.pid)]
        for _ in range(SETTLE_SECONDS):
            time.sleep(1)
            sizes.append(resident_kilobytes(server.pid))
            if has_settled(sizes):
                break
    return sizes[-1]


def has_settled(sizes: list[int]) -> bool:
    """Whether a size, taken each second, has stayed within a percent for a while."""
    last = sizes[-QUIET_SECONDS:]
    return len(sizes) > QUIET_SECONDS and max(last) <= min(last) * 1.01
