"""Lines of waiting jobs against a plain list that is sorted anew for every question."""

from dataclasses import dataclass, field

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.core.queues.definitions import Ageing, Queue
from gateway.core.vocabulary import OrderPolicy
from gateway.core.waiting import run as runs
from gateway.core.waiting.alarms import Alarms
from gateway.core.waiting.lines import Lines
from gateway.core.waiting.table import NewJob
from tests.properties.strategies import Dice, seeds

usual = settings(max_examples=60, deadline=None)
HOUR_US = 3_600_000_000


@dataclass
class Plain:
    """The same jobs, kept simply."""

    queues: dict[str, Queue] = field(default_factory=dict)
    jobs: dict[int, NewJob] = field(default_factory=dict)

    def line(self, queue: str, now_us: int) -> list[int]:
        mine = [
            job for job in self.jobs.values() if job.queue == queue and job.eligible_us <= now_us
        ]
        return [job.job_id for job in sorted(mine, key=lambda job: self._key(job, now_us))]

    def _key(self, job: NewJob, now_us: int) -> tuple[int, int, int]:
        ageing = self.queues[job.queue].ageing
        waited_us = now_us - max(job.submitted_us, job.eligible_us)
        gained = min(ageing.cap * HOUR_US, ageing.per_hour * waited_us)
        return -(job.priority * HOUR_US + gained), job.submitted_us, job.job_id


def order_of(lines: Lines, queue: str, now_us: int) -> list[int]:
    line = lines.lines[queue]
    entries = [
        (line.position(group, entry, now_us), entry[2])
        for group in lines.groups_of(queue)
        for entry in group.run.walk()
    ]
    return [job_id for _, job_id in sorted(entries)]


def a_job(dice: Dice, job_id: int, now_us: int) -> NewJob:
    return NewJob(
        job_id=job_id,
        version=1,
        queue=dice.pick(["one", "two"]),
        class_id=dice.number(0, 2),
        user=dice.pick(["ann", "bob"]),
        priority=dice.number(-2, 2),
        rank=0,
        submitted_us=max(0, now_us - dice.number(0, 3)),
        eligible_us=now_us + HOUR_US * dice.number(1, 3) if dice.happens(20) else 0,
    )


def some_queues(dice: Dice) -> list[Queue]:
    ageing = dice.pick([Ageing(), Ageing(per_hour=1, cap=2), Ageing(per_hour=3, cap=1)])
    order = dice.pick([OrderPolicy.PRIORITY, OrderPolicy.FAIR_USERS])
    return [Queue(name="one", ageing=ageing, order=order), Queue(name="two")]


@given(seeds, st.integers(1, 8), st.sampled_from([1, 64]))
@usual
def test_a_line_stands_as_if_it_were_sorted_anew(seed: int, steps: int, crowd: int) -> None:
    dice, plain, lines = Dice(seed), Plain(), Lines({})
    now_us, next_id = HOUR_US, 1
    for _ in range(steps):
        queues = some_queues(dice)
        plain.queues = {queue.name: queue for queue in queues}
        if dice.happens(40) or not lines.lines:
            lines.define(queues)
        plain.queues = {name: line.queue for name, line in lines.lines.items()}
        new = [a_job(dice, next_id + at, now_us) for at in range(dice.number(0, 3) * crowd)]
        next_id += len(new)
        changed = [job_id for job_id in plain.jobs if dice.happens(20)]
        new += [a_job(dice, job_id, now_us) for job_id in changed]
        lines.add(new)
        plain.jobs.update((job.job_id, job) for job in new)
        for job_id in [job_id for job_id in plain.jobs if dice.happens(15)]:
            lines.remove(job_id)
            del plain.jobs[job_id]
        now_us += dice.number(0, 2) * HOUR_US // 2
        lines.advance(now_us)
        assert len(lines) == len(plain.jobs)
        for name in plain.queues:
            assert order_of(lines, name, now_us) == plain.line(name, now_us)


@given(seeds)
@usual
def test_giving_back_slots_changes_no_line(seed: int) -> None:
    dice, lines = Dice(seed), Lines({})
    lines.define(some_queues(dice))
    jobs = [a_job(dice, job_id, HOUR_US) for job_id in range(1, 30)]
    # Ids that do not grow are found as well, before and after.
    lines.add(jobs[::-1])
    crowd = range(1000, 1000 + 5000)
    lines.add([a_job(dice, job_id, HOUR_US)._replace(eligible_us=0) for job_id in crowd])
    for job_id in crowd:
        lines.remove(job_id)
    lines.advance(HOUR_US)
    before = [order_of(lines, name, HOUR_US) for name in ("one", "two")]
    taken = lines.table.count
    lines.compact()
    assert lines.table.count == len(lines) < taken
    assert [order_of(lines, name, HOUR_US) for name in ("one", "two")] == before
    later_us = 5 * HOUR_US
    lines.advance(later_us)
    assert sorted(order_of(lines, "one", later_us) + order_of(lines, "two", later_us)) == sorted(
        job.job_id for job in jobs
    )
    lines.remove(7)
    assert lines.table.find(7) is None
    assert len(lines) == 28


@given(seeds, st.lists(st.lists(st.integers(0, 50), max_size=120), max_size=5))
@usual
def test_alarms_ring_in_order_and_once(seed: int, batches: list[list[int]]) -> None:
    dice, alarms = Dice(seed), Alarms()
    left: list[tuple[int, int]] = []
    now_us = 0
    for batch in batches:
        large = batch * dice.pick([1, 6])
        slots = [dice.number(0, 9) for _ in large]
        alarms.set(np.array(large, dtype=np.int64), np.array(slots, dtype=np.int64))
        left += zip(large, slots, strict=True)
        assert alarms.next_at() == min((at for at, _ in left), default=None)
        now_us += dice.number(0, 20)
        due = sorted(pair for pair in left if pair[0] <= now_us)
        assert list(alarms.due(now_us)) == [slot for _, slot in due]
        left = [pair for pair in left if pair[0] > now_us]


def test_a_short_list_of_newcomers_is_merged_before_it_costs_more_than_the_run() -> None:
    lines = Lines({})
    lines.define([Queue(name="one")])
    jobs = [NewJob(n, 1, "one", 0, "ann", n % 5, 0, n) for n in range(1, 400)]
    for start in range(0, 399, 30):
        lines.add(jobs[start : start + 30])
        (group,) = lines.groups_of("one")
        assert group.run.first() is not None
        assert len(group.run._newcomers) <= runs.LEAST_NEWCOMERS
    ordered = [job.job_id for job in sorted(jobs, key=lambda job: (-job.priority, job.job_id))]
    assert order_of(lines, "one", 0) == ordered
