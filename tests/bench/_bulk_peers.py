"""The yardsticks of bulk submits: the same rows, by the fastest way that the database offers.

Same table with all its indexes, same number of rows a transaction, same durability; but no HTTP,
no reading of manifests, no checks, no events.
"""

import itertools
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any

import psycopg
from sqlalchemy.engine import make_url

from gateway.db.engine import open_database
from gateway.db.jobs import intern_class
from gateway.manifests import digest, read_job
from gateway.schemas.job_spec import JobSpec
from gateway.service.gangs import request_of, totals_of
from tests.bench._bodies import manifest

_numbers = itertools.count()


def peer_rate(url: str, batches: int, batch_size: int) -> float:
    """Give rows a second of executemany (SQLite) or COPY (PostgreSQL) into the jobs table."""
    spec = read_job(manifest("peer"))
    database = open_database(url)
    class_id = database.run_write(lambda writer: intern_class(writer, request_of(spec)))
    database.close()
    batch_rows = [list(_rows(spec, class_id, batch_size)) for _ in range(batches)]
    insert = _executemany if url.startswith("sqlite") else _copy
    started = time.perf_counter()
    insert(url, batch_rows)
    return batches * batch_size / (time.perf_counter() - started)


def _rows(spec: JobSpec, class_id: int, count: int) -> Iterator[dict[str, Any]]:
    pods, gpus, rdma = totals_of(spec)
    text, key = spec.model_dump_json(), digest(spec)
    for _ in range(count):
        name = f"peer-{next(_numbers)}"
        yield {
            "uid": f"00000000-0000-4000-8000-{name:>12}"[:36],
            "name": name,
            "namespace": spec.namespace,
            "queue": "default",
            "user_name": "bench",
            "spec": text,
            "spec_digest": key,
            "class_id": class_id,
            "priority": 0,
            "pods": pods,
            "gpus": gpus,
            "rdma": rdma,
            "state": "pending",
            "start_timeout_seconds": 1800,
            "submitted_us": time.time_ns() // 1000,
            "xact_id": 1,
        }


def _executemany(url: str, batch_rows: Sequence[Sequence[dict[str, Any]]]) -> None:
    names = list(batch_rows[0][0])
    marks = ", ".join(f":{name}" for name in names)
    statement = f"INSERT INTO jobs ({', '.join(names)}) VALUES ({marks})"  # noqa: S608 - own names
    with closing(sqlite3.connect(make_url(url).database or "")) as connection:
        connection.execute("PRAGMA synchronous=FULL")
        for rows in batch_rows:
            with connection:
                connection.executemany(statement, rows)


def _copy(url: str, batch_rows: Sequence[Sequence[dict[str, Any]]]) -> None:
    names = list(batch_rows[0][0])
    with psycopg.connect(url) as connection:
        for rows in batch_rows:
            with (
                connection.transaction(),
                connection.cursor() as cursor,
                cursor.copy(f"COPY jobs ({', '.join(names)}) FROM STDIN") as copy,
            ):
                for row in rows:
                    copy.write_row(list(row.values()))
