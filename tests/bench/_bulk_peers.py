"""The yardsticks of bulk submits: the same rows, by the fastest way that the database offers.

What a submit leaves behind: a job and its first event, in the same tables with all their indexes,
as many a transaction and as durable; but no HTTP, no reading of manifests, no checks, no answers.
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

_numbers = itertools.count(1)
Row = dict[str, Any]


def peer_rate(url: str, batches: int, batch_size: int) -> float:
    """Give rows a second of executemany (SQLite) or COPY (PostgreSQL) into the jobs table."""
    spec = read_job(manifest("peer"))
    database = open_database(url)
    class_id = database.run_write(lambda writer: intern_class(writer, request_of(spec)))
    database.close()
    # Rows are made before the clock starts: the yardstick is the database alone.
    batch_rows = [list(_rows(spec, class_id, batch_size)) for _ in range(batches)]
    insert = _executemany if url.startswith("sqlite") else _copy
    started = time.perf_counter()
    insert(url, batch_rows)
    return batches * batch_size / (time.perf_counter() - started)


def _rows(spec: JobSpec, class_id: int, count: int) -> Iterator[Row]:
    pods, gpus, rdma = totals_of(spec)
    text, key = spec.model_dump_json(), digest(spec)
    for _ in range(count):
        number = next(_numbers)
        name = f"peer-{number}"
        yield {
            "id": number,
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


def _events(rows: Sequence[Row]) -> list[Row]:
    return [
        {
            "at_us": row["submitted_us"],
            "job_id": row["id"],
            "kind": "submitted",
            "actor": row["user_name"],
            "data": "{}",
            "xact_id": 1,
        }
        for row in rows
    ]


def _executemany(url: str, batch_rows: Sequence[Sequence[Row]]) -> None:
    with closing(sqlite3.connect(make_url(url).database or "")) as connection:
        # As durable as the gateway; the file is in WAL mode already, which it keeps.
        connection.execute("PRAGMA synchronous=FULL")
        for rows in batch_rows:
            with connection:
                for table, values in (("jobs", rows), ("events", _events(rows))):
                    names = list(values[0])
                    marks = ", ".join(f":{name}" for name in names)
                    connection.executemany(
                        f"INSERT INTO {table} ({', '.join(names)}) VALUES ({marks})",  # noqa: S608 - own names
                        values,
                    )


def _copy(url: str, batch_rows: Sequence[Sequence[Row]]) -> None:
    with psycopg.connect(url) as connection:
        for rows in batch_rows:
            with connection.transaction(), connection.cursor() as cursor:
                for table, values in (("jobs", rows), ("events", _events(rows))):
                    with cursor.copy(f"COPY {table} ({', '.join(values[0])}) FROM STDIN") as copy:
                        for row in values:
                            copy.write_row(list(row.values()))
