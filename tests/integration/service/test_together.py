"""Many gangs move together: what overtakes or spoils one of them is that one's affair alone."""

from typing import Any

from sqlalchemy import update

from gateway.backends.base import Launch, ObjectRef
from gateway.core.vocabulary import JobState
from gateway.db.engine import Writer
from gateway.db.tables import attempts, jobs
from gateway.service.launching import INTENT_SECONDS, launch_due
from gateway.service.reconciling import reconcile_due
from gateway.service.verbs import cancel
from tests.service_world import ANNA, World

SMALL: dict[str, Any] = {"gpu": 1, "script": {"run-seconds": 5, "start-seconds": 0}}


def several(world: World, count: int = 4) -> list[str]:
    """Submit small gangs and reserve all of them in one cycle."""
    ids = [world.submit(name=f"job-{number}", **SMALL) for number in range(count)]
    world.decide()
    assert {world.state(job_id) for job_id in ids} == {JobState.RESERVED}
    return ids


def states(world: World, ids: list[str]) -> list[JobState]:
    return [world.state(job_id) for job_id in ids]


def test_one_pass_launches_all_and_each_has_its_own_history(world: World) -> None:
    ids = several(world)
    assert launch_due(world.gateway) == 4
    assert states(world, ids) == [JobState.LAUNCHING] * 4
    for job_id in ids:
        assert world.kinds(job_id) == ["submitted", "reserved", "launching"]
    assert world.objects() == 4


def test_a_gang_that_ends_gives_its_devices_back_in_the_same_pass(world: World) -> None:
    ids = several(world)
    launch_due(world.gateway)
    reconcile_due(world.gateway)
    assert states(world, ids) == [JobState.RUNNING] * 4
    world.clock.advance(10)
    assert reconcile_due(world.gateway) == 4
    assert states(world, ids) == [JobState.SUCCEEDED] * 4
    assert world.is_idle()
    assert world.kinds(ids[0])[-3:] == ["running", "stopping", "succeeded"]


class Meddling:
    """Lets something happen while the creates of a pass are under way, once."""

    def __init__(self, world: World, act: Any) -> None:
        self._act, self._create = act, world.cluster.create
        world.cluster.create = self.create  # type: ignore[method-assign]

    def create(self, launch: Launch) -> ObjectRef:
        """Create as before, then let it happen."""
        ref = self._create(launch)
        act, self._act = self._act, lambda: None
        act()
        return ref


def test_a_gang_that_is_cancelled_between_its_steps_stops_and_the_others_go_on(
    world: World,
) -> None:
    ids = several(world)
    Meddling(world, lambda: cancel(world.gateway, ANNA, ids[2]))
    launch_due(world.gateway)
    assert states(world, [ids[0], ids[1], ids[3]]) == [JobState.LAUNCHING] * 3
    assert world.state(ids[2]) is JobState.STOPPING
    world.until(ids[2], JobState.CANCELLED)


def test_an_attempt_that_moved_on_meanwhile_is_left_out_alone(world: World) -> None:
    ids = several(world)
    row = world.attempt(ids[1])
    ahead = update(attempts).where(attempts.c.id == row["id"]).values(phase="created")
    Meddling(world, lambda: world.write(ahead))
    launch_due(world.gateway)
    phases = [world.attempt(job_id)["phase"] for job_id in ids]
    assert phases == ["open", "created", "open", "open"]


def test_a_create_whose_intent_has_grown_old_is_intended_anew(world: World) -> None:
    ids = several(world, 2)
    # As when the call for the first takes very long.
    Meddling(world, lambda: world.clock.advance(INTENT_SECONDS + 1))
    launch_due(world.gateway)
    assert [world.attempt(each)["phase"] for each in ids] == ["open", "intended"]
    before = world.attempt(ids[1])["sent_us"]
    launch_due(world.gateway)
    assert world.attempt(ids[1])["phase"] == "open"
    assert world.attempt(ids[1])["sent_us"] > before


def test_an_end_that_somebody_else_settled_first_holds_up_no_other(world: World) -> None:
    ids = several(world)
    launch_due(world.gateway)
    reconcile_due(world.gateway)
    world.clock.advance(10)
    row, real = world.attempt(ids[0]), world.cluster.logs
    closed = update(attempts).where(attempts.c.id == row["id"])

    def logs(*args: Any, **options: Any) -> Any:
        world.write(closed.values(phase="closed", closed_us=1))
        return real(*args, **options)

    world.cluster.logs = logs  # type: ignore[method-assign]
    assert reconcile_due(world.gateway) == 4
    assert states(world, ids) == [JobState.STOPPING] + [JobState.SUCCEEDED] * 3


def test_a_cycle_drops_only_the_gang_that_collides(world: World) -> None:
    ids = [world.submit(name=f"job-{number}", **SMALL) for number in range(3)]
    spoiled = update(jobs).where(jobs.c.id == world.job_row(ids[1])["id"])

    def spoil(writer: Writer) -> None:
        touched = {"version": jobs.c.version + 1, "xact_id": writer.xact_id}
        writer.connection.execute(spoiled.values(**touched))

    real = world.gateway.database.run_write
    fired: list[bool] = []

    def run_write(work: Any, attempts: int = 5) -> Any:
        # After the plan is made and before its first gang is written.
        if not fired and "_admit" in repr(work):
            fired.append(True)
            real(spoil)
        return real(work, attempts)

    object.__setattr__(world.gateway.database, "run_write", run_write)
    world.decide()
    assert fired
    assert states(world, ids) == [JobState.RESERVED, JobState.PENDING, JobState.RESERVED]
    world.decide()
    assert world.state(ids[1]) is JobState.RESERVED
