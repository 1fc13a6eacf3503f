"""What was asked for of late decides where a gang goes, under the policy that asks for it."""

import pytest

from gateway.core.admission import Policies
from gateway.core.devices.fleet import Bool
from gateway.core.mirror import Mirror
from gateway.core.placing.room import Room
from gateway.core.policies.placement import PLACEMENT, GangPlaces, PodSets, pack
from gateway.core.vocabulary import JobState
from gateway.db.engine import Database
from gateway.service.context import MirrorState
from gateway.service.mirroring import refresh
from tests.service_world import World, a_world

SMALL, HALF, WHOLE = 1, 4, 8


def a_world_by(policy: str, database: Database) -> World:
    world = a_world(database)
    world.gateway.mirror = MirrorState(mirror=Mirror(Policies(placement=policy)))
    return world


@pytest.mark.parametrize("policy", ["pack", "spread"])
def test_what_is_usual_is_not_read_for_policies_that_do_not_care(
    policy: str, database: Database
) -> None:
    world = a_world_by(policy, database)
    world.submit(gpu=HALF)
    refresh(world.gateway)
    assert world.gateway.mirror.mirror.state.recent == ()


def test_ended_jobs_still_tell_what_is_usual(database: Database) -> None:
    world = a_world_by("fragmentation", database)
    for name in ("one", "two"):
        world.until(world.submit(name=name, gpu=HALF), JobState.SUCCEEDED)
    refresh(world.gateway)
    ((request, jobs),) = world.gateway.mirror.mirror.state.recent
    assert (dict(request.total)["gpu"], jobs) == (HALF, 2)
    world.submit(name="three", gpu=HALF)
    refresh(world.gateway)
    refresh(world.gateway)
    assert [number for _, number in world.gateway.mirror.mirror.state.recent] == [3]


def test_gangs_are_placed_and_end_under_every_policy(database: Database) -> None:
    world = a_world_by("fragmentation", database)
    ids = [world.submit(name=f"job-{gpu}", gpu=gpu) for gpu in (SMALL, HALF, WHOLE)]
    for job_id in ids:
        world.until(job_id, JobState.SUCCEEDED)
    assert world.is_idle()


def test_a_request_that_a_policy_fails_on_stops_only_its_own_jobs(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    def picky(room: Room, pod_sets: PodSets, nodes: dict[str, Bool]) -> GangPlaces | None:
        if dict(pod_sets[0].per_pod)["gpu"] == HALF:
            raise ZeroDivisionError
        return pack(room, pod_sets, nodes)

    monkeypatch.setitem(PLACEMENT, "picky", picky)
    world = a_world_by("picky", database)
    poisoned = world.submit(name="poisoned", gpu=HALF)
    world.turn()
    assert world.job_row(poisoned)["is_quarantined"]
    world.until(world.submit(name="healthy", gpu=SMALL), JobState.SUCCEEDED)
