"""Fairness, checked from scratch on what the engine did."""

from collections import Counter, deque
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given, settings

from gateway.core.admission import Admit, Policies, Usage, plan_cycle
from gateway.core.queues.definitions import Cohort, Queue
from tests.builders import a_fleet, a_gang, a_node, a_quota, a_snapshot, devices_of, waiting_jobs
from tests.oracle.lines import Job, first_bar, in_order, jobs_of
from tests.oracle.moving import Trial, admitted_with
from tests.oracle.planner import Head, best_below, child_key, new_case, root_key
from tests.oracle.tree import Node, Used, counted, path, plus
from tests.oracle.trying import (
    Admission,
    Admissions,
    Case,
    nominate,
    passing,
    room_after,
    try_gang,
    used_after,
)
from tests.properties.engine_steps import a_world
from tests.properties.engine_variants import unthrottled
from tests.properties.strategies import seeds

BUDGET = 1000
Told = Admissions


def admissions_of(case: Case, admits: tuple[Admit, ...]) -> list[Admissions]:
    """Retell the engine's admissions to the specification: who stands where after each of them."""
    jobs = {job.job_id: job for job in jobs_of(case.snapshot)}
    told: list[Admissions] = [()]
    for admit in admits:
        used, job = used_after(case, told[-1]), jobs[admit.job_id]
        charged = {(each.flavor, each.resource): each.amount for each in admit.charges}
        options = passing(case, used, case.queues[job.queue], job.request)
        choice = next(choice for choice, charges in options if charges == charged)
        newcomer = Admission(job, charged, {}, choice)
        found = admitted_with(case, Trial(told[-1], ()), newcomer)
        assert found is not None, "admitted although it does not fit"
        told.append(found)
    return told


def first_in_line(case: Case, told: Told, queue: Queue) -> Job | None:
    """Give the eligible job of a queue that comes first now."""
    gone = {each.job.job_id for each in told}
    jobs = [
        job
        for job in jobs_of(case.snapshot)
        if job.queue == queue.name
        and job.job_id not in gone
        and first_bar(case.snapshot, queue, job, case.now_us) is None
    ]
    return next(iter(in_order(case.snapshot, queue, jobs, case.now_us)), None)


def with_all_protected(case: Case, used: Used, asker: str) -> Used:
    """Count the unused nominal quota of all others as used, as if each of them protected it."""
    for name in case.queues:
        if name != asker:
            rows = case.tree.rows["queue", name]
            unused = {pair: max(0, rows[pair].nominal - used.get((name, pair), 0)) for pair in rows}
            used = plus(used, name, unused)
    return used


def heads_now(case: Case, told: Told) -> tuple[dict[str, Head], set[str]]:
    """Give each queue's first job, and the queues whose first job surely fits."""
    used, room = used_after(case, told), room_after(case, told)
    heads: dict[str, Head] = {}
    fitting: set[str] = set()
    for name, queue in case.queues.items():
        job = first_in_line(case, told, queue)
        if job is not None:
            heads[name] = Head(job, nominate(case, used, queue, job.request))
            if try_gang(case, with_all_protected(case, used, name), room, job):
                fitting.add(name)
            room = room_after(case, told)
    return heads, fitting


def sides(case: Case, one: str, other: str) -> tuple[Node, Node, bool]:
    """Give the children, below where two queues' paths meet, and whether they meet at all."""
    ours, theirs = path(case.tree, ("queue", one)), path(case.tree, ("queue", other))
    meeting = next((node for node in ours if node in theirs), None)
    if meeting is None:
        return ours[-1], theirs[-1], False
    return ours[ours.index(meeting) - 1], theirs[theirs.index(meeting) - 1], True


def queues_below(case: Case, side: Node) -> set[str]:
    """Give the names of a side's queues."""
    return {name for name in case.queues if side in path(case.tree, ("queue", name))}


def check_turn(case: Case, told: Told, admission: Admission) -> int:
    """Compare who was admitted with everybody who could have been; give the number compared."""
    heads, fitting = heads_now(case, told)
    name, used = admission.job.queue, used_after(case, told)
    one = Head(admission.job, counted(case.tree, name, admission.charges))
    compared = 0
    for other in fitting - {name}:
        ours, theirs, do_meet = sides(case, name, other)
        # A side speaks through its best; one that turns out not to fit leaves only at its turn.
        if queues_below(case, theirs) & heads.keys() <= fitting:
            key = child_key if do_meet else root_key
            best = best_below(case, used, heads, theirs)
            assert best is not None
            assert key(case, used, ours, one) <= key(case, used, theirs, best)
            compared += 1
    return compared


@given(seeds)
@settings(max_examples=80, deadline=None)
def test_nobody_is_admitted_before_a_side_with_a_lower_key(seed: int) -> None:
    world = unthrottled(a_world(seed))
    # With one flavor a head is charged the same whenever it is asked, so moments compare.
    queues = {name: replace(each, flavors=("large",)) for name, each in world.queues.items()}
    snapshot = replace(world, queues=queues).snapshot()
    case = new_case(snapshot, world.now_us)
    plan = plan_cycle(snapshot, Policies(), now_us=world.now_us, budget=BUDGET)
    told = admissions_of(case, plan.admits)
    for before, after in pairwise(told):
        check_turn(case, before, after[-1])


GPUS = 48
WEIGHTS = {"one": 1, "two": 2, "three": 3}


def next_admits(holding: Counter[str]) -> list[str]:
    """Give the queues whose jobs are admitted while all of them have many jobs of two GPUs."""
    queues = tuple(
        Queue(name=name, cohort="lab", weight=weight, quotas=(a_quota(4),))
        for name, weight in WEIGHTS.items()
    )
    waiting = waiting_jobs(
        (a_gang(gpu=2),),
        queue=[index for index in range(3) for _ in range(GPUS // 2)],
        request_class=[0] * (3 * GPUS // 2),
    )
    fleet = a_fleet(
        [a_node(i) for i in range(GPUS // 8)],
        [device for i in range(GPUS // 8) for device in devices_of(i)],
    )
    usage = tuple(
        Usage(queue=name, flavor="default", resource="gpu", amount=2 * jobs)
        for name, jobs in sorted(holding.items())
    )
    cohort = Cohort(name="lab", quotas=(a_quota(GPUS - 12),))
    snapshot = a_snapshot(waiting, fleet, queues, (cohort,), usage)
    plan = plan_cycle(snapshot, Policies(), now_us=0, budget=BUDGET)
    return [admit.queue for admit in plan.admits][: GPUS // 2 - holding.total()]


@pytest.mark.parametrize("ends_at_once", [1, 5])
def test_saturated_queues_borrow_in_the_ratio_of_their_weights(ends_at_once: int) -> None:
    running: deque[str] = deque()
    borrowed: Counter[str] = Counter()
    for _ in range(120):
        running.extend(next_admits(Counter(running)))
        for name, jobs in Counter(running).items():
            borrowed[name] += max(0, 2 * jobs - 4)
        for _ in range(ends_at_once):
            running.popleft()
    for name, weight in WEIGHTS.items():
        share = Fraction(borrowed[name], borrowed.total())
        assert abs(share / Fraction(weight, 6) - 1) <= Fraction(5, 100)
