"""Pass after pass over one state: what stays dead, what is told again, what must not be lost."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from gateway.core.admission import Admit, CyclePlan, plan_pass
from gateway.core.admission.passes import MOST_TOLD, REFRESH_US
from gateway.core.jobs.request import RequestClass
from gateway.core.mirror import ChargeRow, ClassRow, DefinitionRows, JobRow, Mirror, MirrorRows
from gateway.core.queues.definitions import Budget, Caps, Queue
from gateway.core.vocabulary import Blocking, JobState, Reason
from tests.builders import DEFAULT_FLAVOR, a_gang, a_node, a_quota, devices_of

NOW_US = 10_000_000


@dataclass
class Site:
    """A mirror over one node of eight GPUs, and what its passes told."""

    mirror: Mirror = field(default_factory=Mirror)
    jobs: dict[int, JobRow] = field(default_factory=dict)
    gangs: list[RequestClass] = field(default_factory=list)
    told: dict[tuple[str, int], Reason] = field(default_factory=dict)
    now_us: int = NOW_US
    generation: int = 0

    def define(self, *queues: Queue) -> None:
        self.generation += 1
        rows = DefinitionRows(self.generation, queues, (), (DEFAULT_FLAVOR,))
        self.mirror.apply(MirrorRows(definitions=rows))

    def submit(self, job_id: int, gang: RequestClass, **changes: Any) -> None:
        """Let a job wait; equal gangs are of one class, numbered from 1."""
        if gang not in self.gangs:
            self.gangs.append(gang)
        class_id = self.gangs.index(gang) + 1
        row = JobRow(
            job_id=job_id,
            version=1,
            queue="q",
            class_id=class_id,
            priority=0,
            submitted_us=job_id,
            state=JobState.PENDING,
            is_quarantined=False,
            user="ann",
        )
        self.mirror.apply(MirrorRows(classes=(ClassRow(class_id, gang),)))
        self.change(row._replace(**changes))

    def change(self, *rows: JobRow) -> None:
        """Let jobs be as these rows say."""
        self.jobs.update((row.job_id, row) for row in rows)
        self.mirror.apply(MirrorRows(jobs=rows))

    def becomes(self, job_id: int, state: JobState) -> None:
        """Let a job's state change and nothing else."""
        self.change(self.jobs[job_id]._replace(state=state))

    def decide(self) -> list[int]:
        """Make a pass; gives whom it admits."""
        return [admit.job_id for admit in self.plan().admits]

    def plan(self, budget: int = 1000) -> CyclePlan:
        """Make a pass and note what it tells."""
        plan = plan_pass(self.mirror.state, 1, self.now_us, budget)
        self.told.update(((hold.queue, hold.class_index), hold.reason) for hold in plan.class_holds)
        return plan

    def start(self, admit: Admit) -> None:
        """Let an admission come true: its devices are taken, its charges counted."""
        row = self.jobs[admit.job_id]
        self.mirror.apply(
            MirrorRows(
                jobs=(row._replace(state=JobState.RESERVED),),
                devices=self._devices(admit, units=0),
                charges=self._charges(admit, live=True),
            )
        )

    def end(self, admit: Admit) -> None:
        """Let a started gang give everything back."""
        row = self.jobs[admit.job_id]
        self.mirror.apply(
            MirrorRows(
                jobs=(row._replace(state=JobState.SUCCEEDED),),
                devices=self._devices(admit, units=100),
                charges=self._charges(admit, live=False),
            )
        )

    def _devices(self, admit: Admit, units: int) -> tuple[Any, ...]:
        mask = admit.placements[0].gpu_mask
        return tuple(
            device._replace(units_free=units)
            for device in devices_of(1, nics=0)
            if mask >> device.ordinal & 1
        )

    def _charges(self, admit: Admit, *, live: bool) -> tuple[ChargeRow, ...]:
        return tuple(
            ChargeRow(
                charge_id=10 * admit.job_id + at,
                queue=admit.queue,
                flavor=charge.flavor,
                resource=charge.resource,
                amount=charge.amount,
                is_live=live,
                user=self.jobs[admit.job_id].user,
                reserved_us=self.now_us,
                closed_us=0 if live else self.now_us,
                attempt_id=admit.job_id,
            )
            for at, charge in enumerate(admit.charges)
        )


@pytest.fixture
def site() -> Site:
    """Give a site with one queue, q."""
    site = Site()
    site.define(Queue(name="q"))
    site.mirror.apply(
        MirrorRows(nodes=(a_node(1),), devices=tuple(devices_of(1)), is_inventory_complete=True)
    )
    return site


@pytest.mark.parametrize(
    "state", [JobState.HELD, JobState.CANCELLED, JobState.SUCCEEDED, JobState.FAILED]
)
def test_what_failed_beside_a_gang_that_never_came_to_hold_anything_is_tried_again(
    site: Site, state: JobState
) -> None:
    site.submit(1, a_gang(gpu=8))
    site.submit(2, a_gang(gpu=4))
    assert site.decide() == [1]
    # Its commit was missed, or it came and went between two readings.
    site.becomes(1, state)
    assert site.decide() == [2]


def test_what_failed_beside_a_gang_that_started_stays_dead_until_that_gang_ends(site: Site) -> None:
    site.submit(1, a_gang(gpu=8))
    site.submit(2, a_gang(gpu=4))
    (admit,) = site.plan().admits
    site.start(admit)
    assert site.decide() == []
    assert site.mirror.state.asks["q", 2].is_dead
    site.end(admit)
    assert site.decide() == [2]


def test_quota_that_comes_back_wakes_only_whom_it_would_let_through(site: Site) -> None:
    site.define(Queue(name="q", quotas=(a_quota(4),)))
    for job_id, gpus in enumerate((2, 2, 4, 2), start=1):
        site.submit(job_id, a_gang(gpu=gpus))
    first, second = site.plan().admits
    site.start(first)
    site.start(second)
    assert site.decide() == []
    site.end(first)
    ask = {ask.gpus: ask for ask in site.mirror.state.asks.values()}
    assert site.plan().admits[0].job_id == 4, "the larger one came first and has no quota yet"
    assert ask[4].is_dead
    site.end(second)
    site.becomes(4, JobState.CANCELLED)
    assert site.decide() == [3]


def test_what_nobody_may_have_read_is_told_again(site: Site) -> None:
    site.submit(1, a_gang(gpu=8))
    site.submit(2, a_gang(gpu=4))
    (admit,) = site.plan().admits
    site.start(admit)
    site.plan()
    assert site.plan().class_holds == ()
    site.mirror.state.untell([("q", 2), ("q", 1), ("gone", 9)])
    assert [hold.class_index for hold in site.plan().class_holds] == [2]


def test_a_gang_that_still_waits_is_planned_again_with_all_that_failed_beside_it(
    site: Site,
) -> None:
    site.submit(1, a_gang(gpu=8))
    site.submit(2, a_gang(gpu=4))
    assert [site.decide() for _ in range(3)] == [[1]] * 3


def test_more_reasons_than_one_pass_has_time_for_are_told_by_the_next_ones(site: Site) -> None:
    count = MOST_TOLD + 30
    for job_id in range(1, count + 1):
        site.submit(job_id, a_gang(gpu=1, pods=8 + job_id))
    first = site.plan()
    assert (len(first.class_holds), first.is_complete) == (MOST_TOLD, False)
    second = site.plan()
    assert (len(second.class_holds), second.is_complete) == (30, True)
    assert site.told == {("q", class_id): Reason.NEVER_FITS for class_id in range(1, count + 1)}
    assert site.plan().class_holds == ()


def test_reasons_that_are_owed_outlive_a_pause_but_not_their_queue(site: Site) -> None:
    for job_id in range(1, MOST_TOLD + 3):
        site.submit(job_id, a_gang(gpu=1, pods=8 + job_id))
    site.plan()
    owed = list(site.mirror.state.owed)
    assert len(owed) == 2
    spent = Budget(gpu_seconds=0, window_seconds=3600)
    site.define(Queue(name="q", budget=spent))
    assert site.plan().is_complete, "nobody can be told anything but that the queue is barred"
    assert list(site.mirror.state.owed) == owed
    site.define(Queue(name="other"))
    site.plan()
    assert list(site.mirror.state.owed) == []


def test_a_refresh_of_reasons_survives_that_a_queue_was_deleted(site: Site) -> None:
    site.submit(1, a_gang(gpu=9))
    site.plan()
    site.define(Queue(name="other"))
    site.now_us += REFRESH_US
    assert site.plan().class_holds == ()


def test_a_reason_is_told_again_once_it_is_old_and_the_state_changed(site: Site) -> None:
    site.submit(1, a_gang(gpu=9))
    assert len(site.plan().class_holds) == 1
    site.now_us += REFRESH_US
    assert site.plan().class_holds == (), "nothing changed"
    site.mirror.apply(MirrorRows(nodes=(a_node(2),)))
    (hold,) = site.plan().class_holds
    assert (hold.queue, hold.class_index, hold.reason) == ("q", 1, Reason.NEVER_FITS)
    site.becomes(1, JobState.CANCELLED)
    site.mirror.apply(MirrorRows(nodes=(a_node(3),)))
    site.now_us += REFRESH_US
    assert site.plan().class_holds == (), "nobody waits for an answer"


def test_reasons_grow_old_on_a_clock_that_was_set_back(site: Site) -> None:
    site.now_us += 100 * REFRESH_US
    site.submit(1, a_gang(gpu=9))
    site.plan()
    site.now_us = NOW_US
    for nodes in (2, 3):
        site.mirror.apply(MirrorRows(nodes=(a_node(nodes),)))
        assert len(site.plan().class_holds) == 1
        assert site.plan().class_holds == ()
        site.now_us += REFRESH_US


def test_a_clock_that_is_set_back_takes_nothing_back(site: Site) -> None:
    budget = Budget(gpu_seconds=81, window_seconds=3600)
    site.define(Queue(name="q", budget=budget))
    site.submit(1, a_gang(gpu=8), eligible_us=NOW_US + 50)
    site.submit(2, a_gang(gpu=9))
    early = site.plan()
    assert (early.admits, early.next_wake_at_us) == ((), NOW_US + 50)
    site.now_us = NOW_US + 60
    (admit,) = site.plan().admits
    site.now_us = 0
    again = site.plan()
    assert again.admits == (admit,)
    site.start(admit)
    # Held since 0 as the clock said: 80 of 81 GPU-seconds are spent at ten seconds.
    assert site.plan().next_wake_at_us == NOW_US + 125_000
    site.now_us = NOW_US + 125_000
    (barred,) = site.plan().queue_holds
    assert barred.reason is Reason.OVER_BUDGET


@pytest.mark.parametrize(
    "caps",
    [
        Caps(user_gpus=2),
        Caps(gpus_per_job=2),
        Caps(user_running_jobs=0),
    ],
)
def test_whom_a_cap_keeps_back_from_the_start_is_told_so(site: Site, caps: Caps) -> None:
    site.define(Queue(name="q", caps=caps))
    site.submit(1, a_gang(gpu=4))
    assert site.decide() == []
    assert site.told == {("q", 1): Reason.OVER_CAP}
    site.define(Queue(name="q"))
    assert site.decide() == [1]


def test_a_class_is_told_what_its_uncapped_users_met(site: Site) -> None:
    site.define(Queue(name="q", caps=Caps(user_running_jobs=1)))
    site.submit(1, a_gang(gpu=1), user="bob")
    (admit,) = site.plan().admits
    site.start(admit)
    site.submit(2, a_gang(gpu=8), user="bob")
    site.submit(3, a_gang(gpu=8), user="cid")
    assert site.decide() == []
    assert site.told["q", 2] is Reason.GANG_DOES_NOT_FIT


def test_the_head_of_a_strict_queue_has_its_own_reason_and_all_others_are_behind(
    site: Site,
) -> None:
    site.define(Queue(name="q", blocking=Blocking.STRICT, quotas=(a_quota(8),)))
    site.submit(9, a_gang(gpu=4), priority=9)
    (running,) = site.plan().admits
    site.start(running)
    site.submit(1, a_gang(gpu=5), priority=2)
    site.submit(2, a_gang(gpu=6), priority=1)
    assert site.decide() == []
    assert site.told == {("q", 2): Reason.OVER_QUOTA, ("q", 3): Reason.BEHIND_PRIORITY}
    site.change(site.jobs[2]._replace(priority=3, version=2))
    site.decide()
    assert site.told == {("q", 2): Reason.BEHIND_PRIORITY, ("q", 3): Reason.OVER_QUOTA}
    # Both are known not to fit by now, so nobody has a turn.
    site.change(site.jobs[2]._replace(priority=0, version=3))
    assert site.plan().admits == ()
    assert site.told == {("q", 2): Reason.OVER_QUOTA, ("q", 3): Reason.BEHIND_PRIORITY}
    site.becomes(1, JobState.HELD)
    site.decide()
    assert site.told["q", 3] is Reason.OVER_QUOTA


def test_a_strict_queue_is_blocked_by_the_first_that_no_cap_keeps_back(site: Site) -> None:
    caps = Caps(user_running_jobs=1)
    site.define(Queue(name="q", blocking=Blocking.STRICT, caps=caps, quotas=(a_quota(4),)))
    # Known not to fit: of two users, behind one that fits and before one that fits.
    site.submit(2, a_gang(gpu=5), user="ann", priority=3)
    site.submit(3, a_gang(gpu=5), user="bob", priority=2)
    assert site.decide() == []
    site.submit(1, a_gang(gpu=1), user="ann", priority=4)
    site.submit(4, a_gang(gpu=2), user="cid", priority=1)
    assert site.decide() == [1], "ann is at her cap then, but bob's job blocks the queue"
