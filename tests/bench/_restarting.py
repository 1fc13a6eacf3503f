"""One restart, in a process of its own: the raw read, then everything up to the first admission."""

import json
import sqlite3
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from typing import Any

import psycopg
from sqlalchemy import func, select
from sqlalchemy.engine import make_url

from gateway.backends.simulated import SimulatedBackend
from gateway.db.engine import Database, open_database
from gateway.db.leases import release
from gateway.db.tables import attempts, charges, jobs
from gateway.service.context import Gateway, Leadership
from gateway.service.cycle import run_cycle
from gateway.service.leading import keep_leading
from gateway.settings import Settings
from tests.bench._tenants import end_until

RAW_READS = (
    (
        "SELECT id, version, queue, class_id, user_name, priority, rank, submitted_us, eligible_us,"
        " deadline_us, expected_seconds FROM jobs WHERE state = 'pending' AND NOT is_quarantined"
        " ORDER BY id"
    ),
    (
        "SELECT id, queue, flavor, resource, amount, is_live, user_name, reserved_us,"
        " coalesce(closed_us, 0), attempt_id FROM charges WHERE is_live"
    ),
    "SELECT * FROM nodes",
    "SELECT * FROM node_amounts",
    "SELECT id, shape FROM request_classes",
)


def raw_read(url: str) -> int:
    """Read what a restart reads by the driver alone; gives how many rows."""
    parsed = make_url(url)
    if parsed.get_backend_name() == "sqlite":
        with closing(sqlite3.connect(parsed.database or "")) as connection:
            return sum(len(connection.execute(each).fetchall()) for each in RAW_READS)
    with psycopg.connect(url) as reading:
        return sum(len(_rows(reading, each)) for each in RAW_READS)


def _rows(connection: psycopg.Connection[Any], statement: str) -> Sequence[Any]:
    return connection.execute(statement.encode()).fetchall()


def restart(url: str) -> Gateway:
    """Give a gateway that leads and knows nothing yet, as a server that was just started."""
    gateway = Gateway(
        database=open_database(url),
        backend=SimulatedBackend(()),
        settings=Settings(),
        leadership=Leadership(holder="restarted"),
    )
    assert keep_leading(gateway)
    return gateway


def end_one(database: Database) -> str:
    """End the gang that has run longest, so that its queue has room for one; gives the queue."""
    with database.read() as connection:
        live = select(func.min(attempts.c.id)).where(attempts.c.phase != "closed")
        attempt_id = int(connection.execute(live).scalar_one())
        of_it = select(charges.c.queue).where(charges.c.attempt_id == attempt_id).limit(1)
        queue = str(connection.execute(of_it).scalar_one())
    end_until(database, attempt_id)
    return queue


def first_of(database: Database, queue: str) -> int:
    """Give the row id of the job that waits longest in a queue whose jobs are all alike."""
    statement = select(func.min(jobs.c.id)).where(jobs.c.queue == queue, jobs.c.state == "pending")
    with database.read() as connection:
        return int(connection.execute(statement).scalar_one())


def main(url: str) -> None:
    """Measure one restart and print it as JSON."""
    before = open_database(url)
    release(before, "bench")
    release(before, "restarted")
    queue = end_one(before)
    expected = first_of(before, queue)
    before.close()
    started = time.perf_counter()
    raw_read(url)
    read = time.perf_counter() - started
    started = time.perf_counter()
    gateway = restart(url)
    while (outcome := run_cycle(gateway)) is None or not outcome.admitted:
        pass
    decided = time.perf_counter() - started
    newest = select(attempts.c.job_id).order_by(attempts.c.id.desc()).limit(1)
    with gateway.database.read() as connection:
        first = int(connection.execute(newest).scalar_one())
    release(gateway.database, "restarted")
    gateway.database.close()
    assert (outcome.admitted, first) == (1, expected), (outcome, first, expected)
    print(json.dumps({"decided": decided, "read": read, "first": first}))


if __name__ == "__main__":
    main(sys.argv[1])
