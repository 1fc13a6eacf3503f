"""The ranked list is the order in which jobs have their turns, on any state, page by page."""

import pytest
from hypothesis import given, settings

from gateway.core.admission import Policies, Snapshot
from gateway.core.admission.ranking import Ranked, Ranking
from gateway.core.admission.snapshots import state_of
from gateway.core.admission.state import State
from gateway.core.queues.definitions import Queue
from gateway.core.vocabulary import OrderPolicy
from tests.oracle.lines import Job, first_bar, in_order, jobs_of
from tests.properties.engine_steps import a_world
from tests.properties.strategies import seeds

usual = settings(max_examples=80, deadline=None)


def asked(seed: int) -> tuple[Snapshot, State, int]:
    world = a_world(seed)
    snapshot = world.snapshot()
    return snapshot, state_of(snapshot, Policies(), world.now_us), world.now_us


def expected(snapshot: Snapshot, queue: Queue, now_us: int) -> list[Job]:
    """Give the line as the naive planner has it, and those whose time has not come behind it."""
    mine = [job for job in jobs_of(snapshot) if job.queue == queue.name]
    early = [job for job in mine if job.eligible_us > now_us]
    line = in_order(snapshot, queue, [job for job in mine if job not in early], now_us)
    early.sort(key=lambda job: (job.eligible_us, job.submitted_us, job.job_id))
    return [*line, *early]


def everybody(ranking: Ranking) -> list[Ranked]:
    return ranking.after(None, max(1, len(ranking)))[0]


@usual
@given(seeds)
def test_the_list_is_in_the_order_of_a_naive_sort(seed: int) -> None:
    snapshot, state, now_us = asked(seed)
    for queue in snapshot.queues:
        jobs = expected(snapshot, queue, now_us)
        ranked = everybody(Ranking(state, queue.name, now_us))
        assert [each.job_id for each in ranked] == [job.job_id for job in jobs]
        assert [each.position for each in ranked] == list(range(1, len(jobs) + 1))
        assert [each.user for each in ranked] == [job.user for job in jobs]


@usual
@given(seeds)
def test_what_bars_a_job_is_what_keeps_it_out_of_the_cycle(seed: int) -> None:
    snapshot, state, now_us = asked(seed)
    for queue in snapshot.queues:
        jobs = {job.job_id: job for job in jobs_of(snapshot)}
        for each in everybody(Ranking(state, queue.name, now_us)):
            bar = first_bar(snapshot, queue, jobs[each.job_id], now_us)
            assert (each.bar and each.bar.reason) == bar


@usual
@given(seeds)
def test_pages_of_any_size_make_up_the_list_and_positions_agree(seed: int) -> None:
    snapshot, state, now_us = asked(seed)
    for queue in snapshot.queues:
        ranking = Ranking(state, queue.name, now_us)
        whole = everybody(ranking)
        for limit in (1, 2, 3):
            paged, after = ranking.after(None, limit)
            while after is not None:
                more, after = ranking.after(after, limit)
                paged += more
            assert paged == whole
        for each in whole:
            place = ranking.place_of(each.job_id)
            assert place is not None
            assert ranking.position(place) == each.position
            assert ranking.of(each.job_id) == each
            ahead = whole[: each.position - 1]
            assert ranking.gpus_before(place) == sum(other.gpus for other in ahead)


@usual
@given(seeds)
def test_the_serial_changes_when_somebody_leaves_and_not_by_looking(seed: int) -> None:
    snapshot, state, now_us = asked(seed)
    for queue in snapshot.queues:
        ranking = Ranking(state, queue.name, now_us)
        assert Ranking(state, queue.name, now_us).serial == ranking.serial
        if len(ranking):
            state.lines.remove(everybody(ranking)[0].job_id)
            assert Ranking(state, queue.name, now_us).serial != ranking.serial


@usual
@given(seeds)
def test_the_terms_add_up_to_the_order(seed: int) -> None:
    snapshot, state, now_us = asked(seed)
    for queue in snapshot.queues:
        ranked = [
            each for each in everybody(Ranking(state, queue.name, now_us)) if not _is_early(each)
        ]
        if queue.order == OrderPolicy.PRIORITY:
            numbers = [each.terms.effective for each in ranked]
            assert numbers == sorted(numbers, key=lambda number: -(number or 0))
            assert all(each.terms.age is not None and each.terms.age >= 0 for each in ranked)
        if queue.order == OrderPolicy.DEADLINE:
            in_time = [
                s for each in ranked if (s := each.terms.slack_seconds) is not None and s >= 0
            ]
            assert in_time == sorted(in_time)
        if queue.order == OrderPolicy.SHORTEST:
            work = [w for each in ranked if (w := each.terms.remaining_gpu_seconds) is not None]
            assert work == sorted(work)
        if queue.order == OrderPolicy.FAIR_USERS:
            usage = [each.terms.user_usage or 0 for each in ranked]
            assert usage == sorted(usage)


def _is_early(each: Ranked) -> bool:
    return each.bar is not None and each.bar.reason == "NotBefore"


def test_an_unknown_job_has_no_place() -> None:
    _, state, now_us = asked(1)
    ranking = Ranking(state, next(iter(state.scene.queues)), now_us)
    assert ranking.place_of(10**9) is None
    with pytest.raises(LookupError):
        ranking.of(10**9)
