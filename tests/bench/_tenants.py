"""A gateway without threads over many queues, for benchmarks that go through a real database.

It leads, has read its fleet and has its jobs in place; what runs ends when the benchmark says so,
in a few statements, so that neither is measured.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice

from sqlalchemy import insert, select, update

from gateway.backends.base import NodeSeen
from gateway.backends.simulated import SimulatedBackend
from gateway.core.jobs.request import PodSetRequest, RequestClass
from gateway.core.resources import CPU, MEMORY, amounts
from gateway.core.vocabulary import DeviceHealth, JobState, Role
from gateway.db.engine import Database, Row, Writer, open_database
from gateway.db.free_amounts import recompute_free
from gateway.db.jobs import intern_class
from gateway.db.migrations import upgrade
from gateway.db.tables import assignments, attempts, charges, jobs
from gateway.schemas.definitions import CohortSpec, DefinitionSet, QueueSpec, QuotaSpec
from gateway.service.context import Caller, Gateway, Leadership
from gateway.service.definitions import apply
from gateway.service.inventory import sync
from gateway.service.leading import keep_leading
from gateway.settings import Settings
from tests.bench.decisions import NODE_CPU, NODE_MEMORY, NODES, Shape

ADMIN = Caller(name="bench", role=Role.ADMIN, namespaces=("*",))
PIECE = 5_000
MOST_UNLAUNCHED = 1_000_000


def cpu_nodes(count: int = NODES) -> list[NodeSeen]:
    """Give nodes without devices, as Kueue's own test has them."""
    total = {"cpu": NODE_CPU, "memory": NODE_MEMORY, "pods": 110}
    return [
        NodeSeen(
            name=f"node-{number:04d}",
            uid=f"node-uid-{number}",
            machine_type="cpu",
            health=DeviceHealth.HEALTHY,
            labels={"kubernetes.io/hostname": f"node-{number:04d}"},
            total=total,
            devices=(),
        )
        for number in range(count)
    ]


def a_gateway(url: str, nodes: Sequence[NodeSeen]) -> Gateway:
    """Give a leading gateway on a fresh database."""
    upgrade(url)
    gateway = Gateway(
        database=open_database(url),
        backend=SimulatedBackend(nodes),
        settings=Settings(max_unlaunched=MOST_UNLAUNCHED),
        leadership=Leadership(holder="bench"),
    )
    assert keep_leading(gateway)
    sync(gateway)
    return gateway


def definitions_of(shape: Shape) -> DefinitionSet:
    """Give queues of 20 CPUs that may borrow 100 more."""
    quota = QuotaSpec(flavor="default", resource=CPU, nominal=20_000, borrowing_limit=100_000)
    names = [f"cohort-{number}" for number in range(shape.cohorts)]
    return DefinitionSet(
        cohorts=tuple(CohortSpec(name=name) for name in names),
        queues=tuple(
            QueueSpec(name=f"queue-{number}-{name}", cohort=name, quotas=(quota,))
            for name in names
            for number in range(shape.queues)
        ),
    )


def add_tenants(gateway: Gateway, shape: Shape) -> int:
    """Define the queues of a shape and let all its jobs wait; gives how many they are."""
    apply(gateway, ADMIN, definitions_of(shape))
    classes = gateway.database.run_write(
        lambda writer: [intern_class(writer, a_request(kind.cpu)) for kind in shape.kinds]
    )
    rows, count = iter(_job_rows(shape, classes)), 0
    while piece := list(islice(rows, PIECE)):
        gateway.database.run_write(partial(_insert, piece))
        count += len(piece)
    return count


def _insert(rows: list[dict[str, object]], writer: Writer) -> None:
    marked = [{**row, "xact_id": writer.xact_id} for row in rows]
    writer.connection.execute(insert(jobs), marked)


def a_request(cpu: int, memory: int = 0) -> RequestClass:
    """Give the class of one pod with this many thousandths of a core, and bytes of memory."""
    wanted = {CPU: cpu} | ({MEMORY: memory} if memory else {})
    return RequestClass(pod_sets=(PodSetRequest(name="Worker", count=1, per_pod=amounts(wanted)),))


def _job_rows(shape: Shape, classes: Sequence[int]) -> Iterator[dict[str, object]]:
    number = 0
    for queue in definitions_of(shape).queues:
        for class_id, kind in zip(classes, shape.kinds, strict=True):
            for _ in range(kind.jobs):
                number += 1
                yield a_job_row(number, queue.name, class_id, kind.priority)


def a_job_row(number: int, queue: str, class_id: int, priority: int) -> dict[str, object]:
    """Give the columns of a job that waits; ids and instants grow together."""
    return {
        "uid": f"00000000-0000-4000-8000-{number:012d}",
        "name": f"job-{number}",
        "namespace": "team-a",
        "queue": queue,
        "user_name": "bench",
        "spec": {"name": f"job-{number}"},
        "spec_digest": "0" * 64,
        "class_id": class_id,
        "priority": priority,
        "pods": 1,
        "gpus": 0,
        "rdma": 0,
        "state": JobState.PENDING,
        "start_timeout_seconds": 1800,
        "submitted_us": number,
    }


def newest_attempt(gateway: Gateway) -> int:
    """Give the row id of the last attempt; 0 when there is none."""
    statement = select(attempts.c.id).order_by(attempts.c.id.desc()).limit(1)
    with gateway.database.read() as connection:
        return int(connection.execute(statement).scalar() or 0)


def end_until(database: Database, attempt_id: int) -> int:
    """End every live attempt up to this one, as if it had run; gives how many were."""
    return database.run_write(lambda writer: _end(writer, attempt_id))


def _end(writer: Writer, attempt_id: int) -> int:
    run, now = writer.connection.execute, 2_000_000_000_000_000
    is_old = (attempts.c.id <= attempt_id) & (attempts.c.phase != "closed")
    statement = select(attempts.c.id, attempts.c.job_id).where(is_old)
    ended: Sequence[Row] = run(statement).mappings().all()
    if not ended:
        return 0
    ids = [row["id"] for row in ended]
    run(update(attempts).where(attempts.c.id.in_(ids)).values(phase="closed", closed_us=now))
    ending = {"state": JobState.SUCCEEDED, "ended_us": now, "xact_id": writer.xact_id}
    run(update(jobs).where(jobs.c.id.in_([row["job_id"] for row in ended])).values(**ending))
    given_back = {"is_live": False, "closed_us": now, "xact_id": writer.xact_id}
    run(update(charges).where(charges.c.attempt_id.in_(ids)).values(**given_back))
    of_them = assignments.c.attempt_id.in_(ids)
    node_ids = run(select(assignments.c.node_id).where(of_them).distinct()).scalars().all()
    run(update(assignments).where(of_them).values(is_live=False))
    recompute_free(writer, sorted(node_ids))
    return len(ids)
