"""What a job would meet if submitted is what it meets once it is; asking changes nothing."""

from typing import Any

from hypothesis import given, settings

from gateway.core.admission import CyclePlan, Policies, plan_cycle, plan_pass
from gateway.core.admission.asking import ASKED_CLASS, ASKED_JOB, Forecast, Scope, forecast
from gateway.core.admission.snapshots import snapshot_of, state_of
from gateway.core.admission.state import State
from gateway.core.jobs.request import RequestClass
from gateway.core.waiting.table import NewJob
from tests.properties.applying_lifts import Case, applied
from tests.properties.engine_steps import STEPS, a_world, submit
from tests.properties.engine_world import World
from tests.properties.strategies import Dice, seeds

BUDGET = 1000
usual = settings(max_examples=80, deadline=None)


def with_newcomer(seed: int) -> tuple[World, int]:
    """Give a world that has lived a little, with the id of the job that came last."""
    dice, world = Dice(seed), a_world(seed)
    for _ in range(dice.number(0, 3)):
        world.apply(plan_cycle(world.snapshot(), Policies(), world.now_us, BUDGET).admits)
        dice.pick(list(STEPS))(world, dice)
    submit(world, dice)
    return world, world.next_id - 1


def asked(world: World, job_id: int) -> tuple[State, NewJob, RequestClass]:
    """Give the state without a job, and the job as it is asked about."""
    job = world.waiting.pop(job_id)
    state = state_of(world.snapshot(), Policies(), world.now_us)
    world.waiting[job_id] = job
    known = {request: class_id for class_id, request in state.classes.items()}
    class_id = known.get(job.gang, ASKED_CLASS)
    fields: dict[str, Any] = {name: getattr(job, name) for name in job._fields[2:]}
    return state, NewJob(ASKED_JOB, 1, job.queue, class_id, **fields), job.gang


def ask(world: World, job_id: int) -> Forecast:
    state, job, request = asked(world, job_id)
    return forecast(state, job, request, Scope(now_us=world.now_us, budget=BUDGET))


def real(world: World) -> CyclePlan:
    return plan_cycle(world.snapshot(), Policies(), world.now_us, BUDGET)


@usual
@given(seeds)
def test_a_forecast_is_what_the_next_cycle_does(seed: int) -> None:
    world, job_id = with_newcomer(seed)
    told, plan = ask(world, job_id), real(world)
    admits = {admit.job_id: admit for admit in plan.admits}
    if job_id in admits:
        assert told.admit is not None
        assert told.admit.placements == admits[job_id].placements
        assert told.admit.charges == admits[job_id].charges
        return
    (hold,) = (hold for hold in plan.holds if hold.job_id == job_id)
    if told.bar is not None:
        assert told.bar.reason == hold.reason
        return
    assert told.hold is not None
    class_hold = next(
        each
        for each in plan.class_holds
        if (each.queue, each.class_index) == (hold.queue, hold.class_index)
    )
    assert told.hold.reason == hold.reason
    assert (told.hold.causes, told.hold.quota_path) == (class_hold.causes, class_hold.quota_path)


@usual
@given(seeds)
def test_what_would_let_it_start_does(seed: int) -> None:
    world, job_id = with_newcomer(seed)
    for words, lifts in ask(world, job_id).sets:
        case = applied(Case(world.snapshot(), job_id, world.now_us), lifts)
        plan = plan_cycle(case.snapshot, Policies(), case.now_us, BUDGET)
        assert job_id in {admit.job_id for admit in plan.admits}, words


def news(state: State, world: World) -> tuple[object, ...]:
    plan = plan_pass(state, 1, world.now_us, BUDGET)
    return plan.admits, {(each.queue, each.class_index): each for each in plan.class_holds}


@usual
@given(seeds)
def test_asking_changes_nothing(seed: int) -> None:
    world, job_id = with_newcomer(seed)
    state, job, request = asked(world, job_id)
    same, _, _ = asked(world, job_id)
    for _ in range(2):
        forecast(state, job, request, Scope(now_us=world.now_us, budget=BUDGET))
        before, after = snapshot_of(same, 1), snapshot_of(state, 1)
        assert before.waiting.job_id.tolist() == after.waiting.job_id.tolist()
        assert (before.usage, before.held, before.spans) == (after.usage, after.held, after.spans)
        # A pass in between: what it learned must be as little disturbed as what it did not.
        assert news(state, world) == news(same, world)
