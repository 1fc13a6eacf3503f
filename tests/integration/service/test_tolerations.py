"""A flavor's tolerations reach the pods that were placed by them, as of the grant."""

import pytest
from sqlalchemy import update

from gateway.backends.base import Launch
from gateway.core.resources.node_rules import Toleration
from gateway.core.vocabulary import JobState
from gateway.db.engine import Writer
from gateway.db.tables import nodes
from gateway.errors import NeverFits
from gateway.schemas.definitions import FlavorSpec
from gateway.schemas.job_spec import TolerationSpec
from gateway.schemas.views import TolerationView
from gateway.service import flavors
from gateway.service.context import Gateway
from gateway.service.launches import live_work, load
from gateway.service.submit import plan
from tests.service_world import ADMIN, ANNA, Between, World, a_replica, a_spec

TAINT = ["pool", "training", "NoSchedule"]
TOLERATION = TolerationSpec(key="pool", value="training", effect="NoSchedule")
GRANTED = (Toleration(key="pool", value="training", effect="NoSchedule"),)


def tolerate(world: World, *tolerations: TolerationSpec) -> None:
    """Let the only flavor have these tolerations."""
    spec = FlavorSpec(name="default", tolerations=tolerations)
    flavors.update_flavor(world.gateway, ADMIN, "default", spec)


def taint(world: World, *taints: list[str]) -> None:
    """Let every node have these taints."""

    def change(writer: Writer) -> None:
        values = {"taints": list(taints), "xact_id": writer.xact_id}
        writer.connection.execute(update(nodes).values(values))

    world.gateway.database.run_write(change)


@pytest.fixture
def tainted(world: World) -> World:
    """Give a world whose nodes keep everybody out but the flavor's own."""
    taint(world, TAINT)
    tolerate(world, TOLERATION)
    return world


def launch_of(gateway: Gateway) -> Launch:
    """Give the launch of the only live attempt."""
    [(job, attempt)] = live_work(gateway)
    return load(gateway, job, attempt).launch


def tolerated(launch: Launch) -> set[tuple[Toleration, ...]]:
    """Give what the pods of a launch tolerate."""
    return {pod.tolerations for pod in launch.pods}


def test_pods_are_launched_with_the_tolerations_that_they_were_placed_by(tainted: World) -> None:
    tainted.submit(gpu=8, workers=1)
    tainted.decide()

    assert tolerated(launch_of(tainted.gateway)) == {GRANTED}


def test_a_flavor_edited_later_does_not_change_what_is_granted(tainted: World) -> None:
    job = tainted.submit(gpu=8)
    tainted.decide()
    before = launch_of(tainted.gateway)
    tolerate(tainted)

    restarted = a_replica(tainted)
    assert launch_of(restarted) == before, "nothing but the database remembers it"
    assert tolerated(before) == {GRANTED}
    tainted.until(job, JobState.RUNNING)


def test_an_edit_between_plan_and_commit_drops_the_plan(tainted: World, between: Between) -> None:
    job = tainted.submit(gpu=8)
    between(lambda _: tolerate(tainted))
    tainted.decide()
    assert tainted.state(job) is JobState.PENDING

    tainted.decide()
    assert tainted.state(job) is JobState.PENDING, "nobody tolerates the taint any more"
    tolerate(tainted, TOLERATION)
    tainted.decide()
    assert tolerated(launch_of(tainted.gateway)) == {GRANTED}


def test_an_attempt_of_before_the_upgrade_is_launched_as_it_was(tainted: World) -> None:
    tolerate(tainted)
    taint(tainted)
    tainted.submit(gpu=8)
    tainted.decide()
    tolerate(tainted, TOLERATION)

    assert tolerated(launch_of(a_replica(tainted))) == {()}


def test_a_dry_run_tells_what_its_pods_would_tolerate(tainted: World) -> None:
    told = plan(tainted.gateway, ANNA, a_spec(gpu=8))
    wanted = TolerationView(key="pool", operator="Equal", value="training", effect="NoSchedule")
    assert [pod.tolerations for pod in told.placements] == [(wanted,)]

    tolerate(tainted)
    with pytest.raises(NeverFits, match="no known node of flavor default is allowed"):
        plan(tainted.gateway, ANNA, a_spec(gpu=8))
