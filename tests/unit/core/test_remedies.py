"""What would let one job start, by example; properties apply every set to many states."""

from dataclasses import replace
from typing import Any

import pytest

from gateway.core.admission import Policies
from gateway.core.admission.asking import ASKED_CLASS, Scope, forecast
from gateway.core.admission.bars import cap_words
from gateway.core.admission.lifts import Change, Question
from gateway.core.admission.ranking import Ranking
from gateway.core.admission.remedies import remedies
from gateway.core.admission.snapshots import state_of
from gateway.core.admission.state import State
from gateway.core.admission.trial import Scene
from gateway.core.devices.rows import DeviceRow
from gateway.core.jobs.request import PodSetRequest, RequestClass
from gateway.core.placing.room import Room
from gateway.core.policies.placement import PLACEMENT, GangPlaces, pack
from gateway.core.queues.definitions import Ageing, Budget, Caps, DatedChange, Queue
from gateway.core.vocabulary import Blocking, DeviceKind, LiftKind, PairRule, QueueState
from gateway.core.waiting.table import NewJob
from tests.builders import (
    a_fleet,
    a_gang,
    a_node,
    a_quota,
    a_snapshot,
    a_waiting_list,
    devices_of,
    waiting_jobs,
)

HOUR_US = 3_600_000_000
NOW_US = 1000 * HOUR_US


def a_state(*gangs: RequestClass, queue: Queue = Queue(name="default"), **more: Any) -> State:  # noqa: B008 - frozen
    """Give a state in which these gangs wait in one queue, the first one first."""
    jobs = a_waiting_list([(0, gang, 0) for gang in gangs])
    snapshot = replace(a_snapshot(jobs, more.pop("fleet", None), queues=(queue,)), **more)
    return state_of(snapshot, Policies(), NOW_US)


def told(state: State, job_id: int = 1) -> list[str]:
    return [each.words for each in remedies(state, job_id, NOW_US)]


def test_nothing_is_told_of_a_job_that_starts_or_does_not_wait() -> None:
    state = a_state(a_gang(gpu=8), a_gang(gpu=4))
    assert told(state, 1) == told(state, 2) == []
    assert told(state, 3) == []
    assert told(a_state(a_gang(gpu=8))) == []


def test_nothing_is_told_of_what_was_not_read_yet() -> None:
    state = a_state(a_gang(gpu=8))
    del state.classes[0]
    assert told(state) == []
    assert Ranking(state, "default", NOW_US).of(1).bar is None


def test_a_pause_and_a_cap_are_lifted_together() -> None:
    queue = Queue(name="default", state=QueueState.PAUSED, caps=Caps(gpus_per_job=4))
    assert told(a_state(a_gang(gpu=8), queue=queue)) == [
        "queue default to be resumed; and cap gpus_per_job of queue default to be 8 at least"
    ]


def test_a_budget_grows_or_its_next_window_comes() -> None:
    budget = Budget(gpu_seconds=0, window_seconds=7200)
    queue = Queue(name="default", budget=budget)
    larger = "the budget of queue default to be 1 GPU-seconds a window at least"
    # A budget of nothing is used up in every window.
    assert told(a_state(a_gang(gpu=8), queue=queue)) == [larger]


def test_the_first_job_of_a_strict_queue_is_passed_by_number_or_by_rule() -> None:
    queue = Queue(name="default", blocking=Blocking.STRICT)
    state = a_state(a_gang(gpu=8, pods=3), a_gang(gpu=8), queue=queue)
    assert told(state, 2) == [
        "queue default to be best_effort instead of strict",
        "a priority of 1 in queue default",
    ]


def test_with_too_many_kinds_the_others_are_to_be_held_back() -> None:
    gangs = [a_gang(gpu=8, pods=2), *(a_gang(gpu=1 + n % 8, pods=3 + n // 8) for n in range(201))]
    sets = remedies(a_state(*gangs), 2, NOW_US)
    assert [each.lifts[-1].kind for each in sets] == [LiftKind.ORDER] * len(sets)
    assert all(each.words.endswith("the 201 other jobs that wait") for each in sets)


def test_a_job_before_its_time_is_judged_by_the_quota_of_that_time() -> None:
    change = DatedChange(at_us=NOW_US + 1, flavor="default", resource="gpu", nominal=2)
    queue = Queue(name="default", quotas=(a_quota(8),), changes=(change,))
    jobs = waiting_jobs((a_gang(gpu=4),), queue=[0], request_class=[0], eligible_us=[NOW_US + 9])
    state = state_of(a_snapshot(jobs, queues=(queue,)), Policies(), NOW_US)
    time, quota = told(state)[0].split("; and ")
    assert time == "the time to be 1970-02-11T16:00:00.000009Z"
    assert quota == "raise the quota of default by 2 GPUs of flavor default"


def test_a_looser_rule_needs_nobody_else_when_nobody_else_waits() -> None:
    far = [
        row
        if row.ordinal in ((0, 1) if row.kind is DeviceKind.GPU else (2, 3))
        else row._replace(units_free=0)
        for row in devices_of(1)
    ]
    fleet = a_fleet((a_node(1),), far)
    aligned = a_gang(gpu=2, rdma=2, pair=PairRule.SWITCH)
    assert told(a_state(aligned, fleet=fleet))[-1] == "accept pair rule 'numa' or 'node' or 'none'"
    shared = told(a_state(aligned, a_gang(gpu=8), fleet=fleet))[-1]
    assert shared.endswith("; and it to come before the 1 other job that waits")


def half_free(node_id: int) -> list[DeviceRow]:
    return [
        row._replace(units_free=0) if row.ordinal > 3 else row for row in devices_of(node_id, 8, 0)
    ]


def picky(
    room: Room, pod_sets: tuple[PodSetRequest, ...], nodes: dict[str, Any]
) -> GangPlaces | None:
    """Place only on an idle node, as a heuristic might."""
    return pack(room, pod_sets, nodes) if int(room.gpu_free[0]) == 255 else None


def test_where_the_places_alone_are_not_enough_all_in_use_has_to_come_free(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(PLACEMENT, "picky", picky)
    jobs = a_waiting_list([(0, a_gang(gpu=4), 0)])
    snapshot = a_snapshot(jobs, a_fleet((a_node(1),), half_free(1)))
    state = state_of(snapshot, Policies(placement="picky"), NOW_US)
    assert told(state) == ["GPUs 4-7 to come free on node-01"]


def test_what_does_not_help_lacks_nothing() -> None:
    state = a_state(a_gang(gpu=8, pods=2), fleet=a_fleet((a_node(1),), devices_of(1)))
    scene: Scene = state.scene
    question = Question(scene, scene.queues["default"], state.classes[0])
    assert question.lacks(Change()) == {}


def test_a_forecast_is_asked_of_a_known_queue_and_leaves_no_class_behind() -> None:
    state = a_state(a_gang(gpu=8))
    job = NewJob(9, 1, "default", 7, "ann", 0, 0, NOW_US)
    found = forecast(state, job, a_gang(gpu=3), Scope(now_us=NOW_US, budget=10))
    assert found.admit is not None
    assert ASKED_CLASS not in state.classes
    with pytest.raises(LookupError):
        forecast(state, job._replace(queue="nowhere"), a_gang(), Scope(now_us=NOW_US, budget=1))


@pytest.mark.parametrize(
    ("cap", "words"),
    [
        ("gpus_per_job", "asks for 4 GPUs; queue q takes 2 in one job"),
        ("running_jobs", "queue q is at its cap of 1 running job"),
        ("user_running_jobs", "ann has 3 jobs running in queue q, as many as one user may"),
        ("user_gpus", "ann holds 1 GPU in queue q, where one user may hold 4; this job asks for 4"),
    ],
)
def test_each_cap_is_told_with_its_numbers(cap: str, words: str) -> None:
    caps = Caps(gpus_per_job=2, running_jobs=1, user_running_jobs=3, user_gpus=4)
    assert cap_words(cap, Queue(name="q", caps=caps), "ann", (1, 4)) == words


def test_a_number_leads_only_where_numbers_decide() -> None:
    state = a_state(
        a_gang(), a_gang(), queue=Queue(name="default", ageing=Ageing(per_hour=1, cap=5))
    )
    ranking = Ranking(state, "default", NOW_US)
    assert [ranking.priority_to_lead(job_id) for job_id in (1, 2, 3)] == [0, 1, None]
    assert ranking.policy == "priority"
