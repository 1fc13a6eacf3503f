"""What jobs say of their devices, from the document to the devices that are held for them."""

from typing import Any

import pytest
from sqlalchemy import select

from gateway.core.vocabulary import DeviceKind, JobState
from gateway.db.engine import Database
from gateway.db.tables import assignments, device_grants, devices
from gateway.errors import GatewayError
from gateway.manifests import read_job
from tests.service_world import World, a_world

PAIR_OF_P4D = {"gpu": [0, 1], "rdma": [0]}


def a_job(name: str, gpu: int, **wishes: Any) -> dict[str, Any]:
    """Give a job of one pod in the short form."""
    return {
        "name": name,
        "namespace": "team-a",
        "image": "a",
        "resources": {"cpu": 1, "gpu": gpu},
        "devices": wishes,
    }


def submitted(world: World, document: dict[str, Any]) -> str:
    return world.submit(read_job(document))


def held_by(world: World, job_id: str) -> dict[str, list[int]]:
    """Give the ordinals of the devices that a job holds, by kind."""
    statement = (
        select(devices.c.kind, devices.c.ordinal)
        .join(device_grants, device_grants.c.device_id == devices.c.id)
        .join(assignments, assignments.c.id == device_grants.c.assignment_id)
        .where(assignments.c.attempt_id == world.attempt(job_id)["id"])
        .order_by(devices.c.ordinal)
    )
    with world.gateway.database.read() as connection:
        rows = connection.execute(statement).all()
    return {
        kind.value: [row.ordinal for row in rows if row.kind == kind]
        for kind in (DeviceKind.GPU, DeviceKind.RDMA)
    }


def test_two_gpus_get_the_one_nic_that_they_share(database: Database) -> None:
    world = a_world(database, "1xp4d")
    job_id = submitted(world, a_job("shared", 2, nics_per_gpu=0.5, pair="switch"))
    assert world.until(job_id, JobState.RUNNING, JobState.SUCCEEDED).rdma == 1
    assert held_by(world, job_id) == PAIR_OF_P4D


def test_jobs_in_partitions_leave_whole_partitions_to_others(database: Database) -> None:
    world = a_world(database, "1xdgx-h100")
    single = submitted(world, a_job("one", 1, nics=1, partition="honour", pair="switch"))
    large = submitted(world, a_job("four", 4, nics_per_gpu=1, partition="honour", pair="switch"))
    pair = submitted(world, a_job("two", 2, nics_per_gpu=1, partition="honour", pair="switch"))
    world.decide()
    assert held_by(world, single) == {"gpu": [0], "rdma": [0]}
    assert held_by(world, large) == {"gpu": [4, 5, 6, 7], "rdma": [4, 5, 6, 7]}
    assert held_by(world, pair) == {"gpu": [2, 3], "rdma": [2, 3]}


def test_a_partition_that_no_machine_has_is_refused_at_submit(world: World) -> None:
    with pytest.raises(GatewayError) as refused:
        submitted(world, a_job("three", 3, partition="honour"))
    assert "no node has an NVLink partition of 3 GPUs" in refused.value.detail


def test_more_nics_beside_a_gpu_than_there_are_is_refused_with_the_nearest_rule(
    world: World,
) -> None:
    with pytest.raises(GatewayError) as refused:
        submitted(world, a_job("greedy", 2, nics_per_gpu=2, pair="switch"))
    assert "near enough for pair rule 'switch'" in refused.value.detail
    assert "the nearest that one has is 'numa'" in refused.value.detail
