"""Whatever an explanation says would help does help: applied, the job starts in the next cycle."""

from hypothesis import given, settings

from gateway.core.admission import ClassHold, Policies, Snapshot, plan_cycle
from gateway.core.admission.remedies import remedies
from gateway.core.admission.snapshots import state_of
from gateway.core.jobs.request import RequestClass
from tests.oracle.lines import first_bar, in_order, jobs_of
from tests.properties.applying_lifts import Case, applied
from tests.properties.engine_steps import STEPS, a_world
from tests.properties.engine_world import World
from tests.properties.strategies import Dice, seeds

BUDGET = 1000
usual = settings(max_examples=150, deadline=None)


def lived(seed: int) -> World:
    dice, world = Dice(seed), a_world(seed)
    for _ in range(dice.number(0, 4)):
        world.apply(plan_cycle(world.snapshot(), Policies(), world.now_us, BUDGET).admits)
        dice.pick(list(STEPS))(world, dice)
    return world


def first_of(snapshot: Snapshot, queue: str, request: RequestClass, now_us: int) -> int | None:
    """Give the first job of a class in its queue that nothing of its own keeps back."""
    (definition,) = (each for each in snapshot.queues if each.name == queue)
    mine = [
        job
        for job in jobs_of(snapshot)
        if (job.queue, job.request) == (queue, request)
        and first_bar(snapshot, definition, job, now_us) is None
    ]
    line = in_order(snapshot, definition, mine, now_us)
    return line[0].job_id if line else None


def starts(case: Case) -> bool:
    plan = plan_cycle(case.snapshot, Policies(), case.now_us, BUDGET)
    return case.job_id in {admit.job_id for admit in plan.admits}


def told_of(world: World) -> tuple[list[tuple[ClassHold, RequestClass]], Snapshot]:
    """Give what a cycle tells with what each class asks for, and the state that it leaves."""
    before = world.snapshot()
    plan = plan_cycle(before, Policies(), world.now_us, BUDGET)
    holds = [(hold, before.waiting.classes[hold.class_index]) for hold in plan.class_holds]
    world.apply(plan.admits)
    return holds, world.snapshot()


@usual
@given(seeds)
def test_every_set_that_a_cycle_tells_lets_the_first_job_of_its_class_start(seed: int) -> None:
    world = lived(seed)
    holds, after = told_of(world)
    for hold, request in holds:
        assert len(hold.unblock) == len(hold.lifts)
        job_id = first_of(after, hold.queue, request, world.now_us)
        if job_id is None:
            continue
        for words, lifts in zip(hold.unblock, hold.lifts, strict=True):
            assert starts(applied(Case(after, job_id, world.now_us), lifts)), (hold, words)


def waiting_after_a_cycle(world: World) -> list[int]:
    world.apply(plan_cycle(world.snapshot(), Policies(), world.now_us, BUDGET).admits)
    return sorted(world.waiting)


@usual
@given(seeds)
def test_every_set_that_is_told_of_a_job_lets_it_start(seed: int) -> None:
    world = lived(seed)
    waiting = waiting_after_a_cycle(world)
    after = world.snapshot()
    for job_id in waiting:
        state = state_of(after, Policies(), world.now_us)
        for words, lifts in remedies(state, job_id, world.now_us):
            assert starts(applied(Case(after, job_id, world.now_us), lifts)), words
