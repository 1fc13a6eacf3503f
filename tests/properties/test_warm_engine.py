"""A state that lives for long decides and explains what one made afresh decides and explains.

After every step of a life the plan of the long-lived mirror is held against the plan of its own
snapshot and against that of a mirror that has just read every row. `WARM_LIVES` in the environment
asks for more lives than the usual run has.
"""

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace

from hypothesis import given, settings

from gateway.core.admission import Admit, CyclePlan, Policies, plan_cycle, plan_pass
from gateway.core.mirror import Mirror
from gateway.core.vocabulary import UNLIMITED, Reason
from tests.properties.engine_definitions import HOUR_US, SECOND_US
from tests.properties.engine_steps import a_world
from tests.properties.strategies import Dice, seeds
from tests.properties.warm_rows import Rows
from tests.properties.warm_steps import ROW_STEPS

LIVES = int(os.environ.get("WARM_LIVES", "60"))
REFRESH_US = 31 * SECOND_US
LONG_US = 1000 * HOUR_US
STEPS = 15
BUDGET = 1000
usual = settings(max_examples=LIVES, deadline=None)

Answer = tuple[str, str]
"""(queue, user) of what bars a queue or user."""


class Life:
    """A long-lived mirror beside the rows that it reads, and what was told about those who wait."""

    def __init__(self, seed: int) -> None:
        self.dice = Dice(seed)
        self.rows = Rows(a_world(seed))
        self.mirror = Mirror()
        self.told: dict[tuple[str, int], Reason] = {}
        self.barred: dict[Answer, Reason] = {}
        self._latest_us = 0

    @property
    def now_us(self) -> int:
        """The latest instant that was ever shown: a clock that is set back stands still."""
        return max(self._latest_us, self.rows.world.now_us)

    def read(self) -> None:
        """Apply what changed, some of it twice, as a reader does whose horizon overlaps."""
        changes = self.rows.changes()
        self.mirror.apply(changes)
        if self.dice.happens(20):
            self.mirror.apply(changes._replace(definitions=None))

    def step(self) -> None:
        """Let one to three things happen, and read them."""
        for _ in range(self.dice.pick([1, 1, 1, 2, 3])):
            self.dice.pick(ROW_STEPS)(self.rows, self.dice)
        self.read()

    def plan(self, most_admits: int = UNLIMITED) -> CyclePlan:
        """Make a pass, and note what it tells."""
        self._latest_us = self.now_us
        plan = plan_pass(self.mirror.state, 1, self.rows.world.now_us, BUDGET, most_admits)
        self.told.update(((each.queue, each.class_index), each.reason) for each in plan.class_holds)
        self.barred = {(each.queue, each.user): each.reason for each in plan.queue_holds}
        return plan

    def commit(self, plan: CyclePlan, admits: Iterable[Admit]) -> None:
        """Let some of a plan come true, and read it."""
        self.rows.world.apply(tuple(admits))
        # They are written in a transaction of their own, which may be lost.
        if self.dice.happens(90):
            self.rows.world.node_holds = plan.node_holds
        self.read()

    def some_of(self, admits: Sequence[Admit]) -> list[Admit]:
        """Give all, some or none: the others missed their compare-and-set."""
        percent = self.dice.pick([100, 100, 50, 0])
        return [admit for admit in admits if self.dice.happens(percent)]


def placed(admits: Iterable[Admit]) -> list[Admit]:
    """Give admissions without the numbers of classes, which a snapshot has its own of."""
    return [replace(admit, class_index=0) for admit in admits]


def cold_plan(life: Life) -> CyclePlan:
    """Decide on the mirror's state as a value."""
    return plan_cycle(life.mirror.snapshot(1), Policies(), life.now_us, BUDGET)


@given(seeds)
@usual
def test_a_long_life_decides_like_a_fresh_start_after_every_step(seed: int) -> None:
    life = Life(seed)
    life.read()
    for _ in range(STEPS):
        fresh = life.rows.cold()
        expected = cold_plan(life)
        warm = life.plan()
        anew = plan_pass(fresh.state, 1, life.now_us, BUDGET)
        assert placed(warm.admits) == placed(expected.admits)
        assert placed(warm.admits) == placed(anew.admits)
        assert warm.queue_holds == expected.queue_holds == anew.queue_holds
        assert warm.node_holds == expected.node_holds == anew.node_holds
        life.commit(warm, life.some_of(warm.admits))
        life.step()


@given(seeds)
@usual
def test_a_plan_that_came_true_leaves_nothing_to_do_until_it_wants_to_be_woken(seed: int) -> None:
    life = Life(seed)
    life.read()
    for _ in range(STEPS // 3):
        plan = life.plan()
        life.commit(plan, plan.admits)
        again = life.plan()
        assert not again.admits
        life.rows.world.now_us = (again.next_wake_at_us or life.now_us + LONG_US) - 1
        assert not life.plan().admits
        life.step()


@given(seeds)
@usual
def test_a_clock_that_is_set_back_takes_nothing_back(seed: int) -> None:
    life = Life(seed)
    life.read()
    for _ in range(STEPS // 3):
        expected = cold_plan(life)
        life.plan()
        early_us = life.now_us - life.dice.pick([1, SECOND_US, HOUR_US, LONG_US])
        behind = plan_pass(life.mirror.state, 1, early_us, BUDGET)
        assert placed(behind.admits) == placed(expected.admits)
        assert behind.queue_holds == expected.queue_holds
        assert behind.node_holds == expected.node_holds
        life.commit(behind, life.some_of(behind.admits))
        life.step()


def settled(life: Life) -> None:
    """Let everything that is planned come true, then let reasons be told anew."""
    for _ in range(6):
        life.rows.world.now_us = life.now_us + REFRESH_US
        plan = life.plan()
        life.commit(plan, plan.admits)
    assert not life.plan().admits


def reasons_by_job(life: Life) -> dict[int, Reason]:
    """Give each job's reason as it is read: what bars its queue or user, else its class's."""
    return {
        job_id: life.barred.get((job.queue, ""))
        or life.barred.get((job.queue, job.user))
        or life.told.get((job.queue, life.rows.classes[job.gang]), Reason.NOT_REACHED)
        for job_id, job in life.rows.world.waiting.items()
        if job.eligible_us <= life.now_us and job.queue in life.rows.world.queues
    }


@given(seeds)
@usual
def test_what_was_told_last_is_what_a_fresh_start_would_tell(seed: int) -> None:
    life = Life(seed)
    life.read()
    for _ in range(STEPS // 3):
        plan = life.plan()
        life.commit(plan, life.some_of(plan.admits))
        life.step()
        life.step()
        settled(life)
        expected = {hold.job_id: hold.reason for hold in cold_plan(life).holds}
        for job_id, reason in reasons_by_job(life).items():
            if expected[job_id] is Reason.OVER_CAP and not is_alone(life, job_id):
                assert reason is not Reason.NOT_REACHED
            else:
                assert reason is expected[job_id]


def is_alone(life: Life, job_id: int) -> bool:
    """Whether nobody else's jobs share a class; one answer is told for a class, whoever waits."""
    jobs = life.rows.world.waiting
    mine = jobs[job_id]
    users = {job.user for job in jobs.values() if (job.queue, job.gang) == (mine.queue, mine.gang)}
    return len(users) == 1
