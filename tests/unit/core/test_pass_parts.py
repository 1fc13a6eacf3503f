"""The parts of a pass by themselves: asks, holdings, when to wake, states as values, grants."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from gateway.core.admission import Charge, Policies, Snapshot
from gateway.core.admission.asks import charges_of, choices, new_ask
from gateway.core.admission.deciding import decide
from gateway.core.admission.granting import admits_of
from gateway.core.admission.heads import capped_classes, head_of
from gateway.core.admission.snapshots import class_ids_of, snapshot_of, state_of
from gateway.core.admission.state import State
from gateway.core.admission.types import Held, Span, Usage, UserUsage
from gateway.core.admission.usage import Holdings, holdings_of
from gateway.core.admission.waking import next_wake_at_us
from gateway.core.jobs.request import RequestClass
from gateway.core.queues.definitions import (
    Ageing,
    Budget,
    Caps,
    Cohort,
    DatedChange,
    Flavor,
    Queue,
)
from gateway.core.queues.tree import QuotaTree
from gateway.core.vocabulary import Blocking, OrderPolicy
from tests.builders import (
    a_fleet,
    a_gang,
    a_pod_set,
    a_quota,
    a_snapshot,
    a_waiting_list,
    waiting_jobs,
)

HOUR_US = 3_600_000_000
SMALL, LARGE = Flavor(name="small"), Flavor(name="large")
MIXED = RequestClass(
    pod_sets=(a_pod_set("Master", cpu=1000), a_pod_set("Worker", count=2, gpu=1, cpu=2000))
)


def a_state(snapshot: Snapshot, now_us: int = 0) -> State:
    """Give a state that stands at an instant, as a pass finds it."""
    state = state_of(snapshot, Policies(), now_us)
    state.at(now_us)
    return state


def named(found: Sequence[dict[str, Flavor]]) -> list[tuple[str, ...]]:
    return [tuple(choice[name].name for name in sorted(choice)) for choice in found]


def test_pod_sets_with_gpus_share_a_flavor_and_the_others_take_any() -> None:
    queue = Queue(name="q", flavors=("small", "large"))
    assert named(list(choices(queue, MIXED, (LARGE, SMALL)))) == [
        ("small", "small"),
        ("large", "small"),
        ("small", "large"),
        ("large", "large"),
    ]


def test_flavors_that_are_not_defined_are_no_choice() -> None:
    queue = Queue(name="q", flavors=("gone", "large"))
    assert named(list(choices(queue, a_gang(), (LARGE, SMALL)))) == [("large",)]
    assert list(choices(Queue(name="q", flavors=("gone",)), a_gang(), (LARGE,))) == []
    assert list(choices(queue, a_gang(gpu=0), ())) == []


def test_a_gang_charges_each_pair_once_for_all_its_pods() -> None:
    one_kind = dict.fromkeys(("Master", "Worker"), LARGE)
    assert charges_of(MIXED, one_kind) == {
        ("large", "cpu"): 5000,
        ("large", "gpu"): 2,
        ("large", "pods"): 3,
    }
    two_kinds = {"Master": SMALL, "Worker": LARGE}
    assert charges_of(MIXED, two_kinds)["small", "cpu"] == 1000
    assert charges_of(MIXED, two_kinds)["large", "cpu"] == 4000


def test_an_ask_counts_only_what_somebody_in_its_root_limits() -> None:
    queue = Queue(name="q", cohort="lab")
    other = Queue(name="other", cohort="lab", quotas=(a_quota(4),))
    tree = QuotaTree((queue, other), (Cohort(name="lab"),))
    ask = new_ask(tree, (Flavor(name="default"),), queue, (7, a_gang(gpu=2, pods=3)))
    assert (ask.gpus, ask.root, ask.class_id, ask.has_caps) == (6, "lab", 7, False)
    (option,) = ask.options
    assert option.counted == {("default", "gpu"): 6}
    assert option.charges == {
        ("default", "cpu"): 3000,
        ("default", "gpu"): 6,
        ("default", "pods"): 3,
    }
    assert option.place == ("default",)


@pytest.mark.parametrize(
    ("caps", "has_caps"),
    [
        (Caps(), False),
        (Caps(queued_jobs=3, user_queued_jobs=1), False),
        (Caps(running_jobs=3), True),
        (Caps(gpus_per_job=3), True),
        (Caps(user_running_jobs=3), True),
        (Caps(user_gpus=3), True),
    ],
)
def test_caps_at_the_door_cost_a_pass_nothing(caps: Caps, *, has_caps: bool) -> None:
    queue = Queue(name="q", caps=caps)
    assert new_ask(QuotaTree((queue,), ()), (), queue, (1, a_gang())).has_caps is has_caps


def test_holdings_are_what_was_counted_in_less_what_was_counted_out() -> None:
    holdings = holdings_of(
        [Held(queue="q", user="ann", jobs=2, gpus=9), Held(queue="q", user="bob", jobs=1, gpus=0)],
        [Span(queue="q", gpus=4, since_us=5), Span(queue="q", gpus=1, since_us=1, until_us=2)],
    )
    holdings.add("q", "ann", jobs=-1, gpus=-8)
    holdings.add("p", "ann", jobs=1, gpus=3)
    assert holdings.jobs == {("q", "ann"): 1, ("q", "bob"): 1, ("p", "ann"): 1}
    assert holdings.gpus == {("q", "ann"): 1, ("q", "bob"): 0, ("p", "ann"): 3}
    assert holdings.running == {"q": 2, "p": 1}
    assert holdings.spans == {"q": [(4, 5, 0), (1, 1, 2)]}


def test_a_queue_without_a_budget_is_never_over_it() -> None:
    spent = Holdings(spans={"q": [(8, 0, 0)]})
    assert not spent.is_over_budget(Queue(name="q"), 10**15)
    assert spent.budget_change_us(Queue(name="q"), 10**15) is None
    hourly = Queue(name="q", budget=Budget(gpu_seconds=8, window_seconds=3600))
    assert spent.is_over_budget(hourly, 1_000_000)
    assert not spent.is_over_budget(hourly, 999_999)
    assert spent.budget_change_us(hourly, 0) == 1_000_000
    assert spent.budget_change_us(hourly, 2_000_000) == HOUR_US


def waiting(*jobs: dict[str, int], queue: Queue | None = None, gang: RequestClass) -> Snapshot:
    """Give a snapshot of jobs of one class in one queue, by the columns named."""
    columns = {
        name: [job.get(name, 0) for job in jobs]
        for name in ("priority", "submitted_us", "eligible_us", "deadline_us", "expected_seconds")
    }
    none = [0] * len(jobs)
    rows = waiting_jobs((gang,), ("ann",), queue=none, request_class=none, **columns)
    return a_snapshot(rows, queues=(queue or Queue(name="default"),))


def wake(snapshot: Snapshot, now_us: int) -> int | None:
    return next_wake_at_us(a_state(snapshot, now_us), now_us)


TOO_LARGE = a_gang(gpu=9)


def test_nothing_wakes_whom_time_does_not_concern() -> None:
    assert wake(waiting({"priority": 3}, gang=TOO_LARGE), 0) is None


def test_the_first_whose_time_comes_wakes() -> None:
    jobs = waiting({"eligible_us": 70}, {"eligible_us": 50}, {"eligible_us": 20}, gang=TOO_LARGE)
    assert [wake(jobs, now_us) for now_us in (0, 20, 49, 50, 70)] == [20, 50, 50, 70, None]


def test_a_deadline_that_can_just_be_met_wakes_when_it_no_longer_can() -> None:
    queue = Queue(name="default", order=OrderPolicy.DEADLINE)
    jobs = waiting({"deadline_us": 5_000_000, "expected_seconds": 2}, queue=queue, gang=TOO_LARGE)
    assert [wake(jobs, now_us) for now_us in (0, 3_000_000, 3_000_001)] == [3_000_001] * 2 + [None]


def test_a_dated_change_wakes_also_where_nobody_waits() -> None:
    change = DatedChange(at_us=40, flavor="default", resource="gpu", nominal=1)
    snapshot = a_snapshot(a_waiting_list([]), queues=(Queue(name="q", changes=(change,)),))
    assert [wake(snapshot, now_us) for now_us in (0, 39, 40)] == [40, 40, None]


def test_a_young_job_wakes_when_it_overtakes_one_that_has_stopped_to_age() -> None:
    queue = Queue(name="default", ageing=Ageing(per_hour=1, cap=2))
    # At ten hours the first is at 0 + 2; the second, submitted then, gains a point an hour.
    jobs = waiting(
        {"submitted_us": 1},
        {"submitted_us": 10 * HOUR_US, "priority": 1},
        queue=queue,
        gang=TOO_LARGE,
    )
    # Level after an hour, where age decides; a microsecond later the second is ahead for sure.
    assert wake(jobs, 10 * HOUR_US) == 11 * HOUR_US
    assert wake(jobs, 11 * HOUR_US) == 11 * HOUR_US + 1
    # Then its own cap is next.
    assert wake(jobs, 11 * HOUR_US + 1) == 12 * HOUR_US


def test_an_older_job_that_became_eligible_later_is_ahead_as_soon_as_both_are_level() -> None:
    queue = Queue(name="default", ageing=Ageing(per_hour=1, cap=2))
    jobs = waiting(
        {"submitted_us": 2},
        {"submitted_us": 1, "eligible_us": 10 * HOUR_US, "priority": 1},
        queue=queue,
        gang=TOO_LARGE,
    )
    level_us = wake(jobs, 10 * HOUR_US)
    assert level_us == 11 * HOUR_US
    state = a_state(jobs, level_us)
    line = state.lines.lines["default"]
    first = min(
        line.position(group, entry, level_us)
        for group in state.lines.groups_of("default")
        for entry in group.run.walk()
    )
    assert first[-1] == 2


def test_whoever_is_admitted_is_in_nobody_s_way_any_more() -> None:
    queue = Queue(name="default", ageing=Ageing(per_hour=1, cap=2))
    jobs = waiting(
        {"submitted_us": 1},
        {"submitted_us": 10 * HOUR_US, "priority": 1},
        queue=queue,
        gang=TOO_LARGE,
    )
    state = a_state(jobs, 10 * HOUR_US)
    old = state.lines.table.find(1)
    assert old is not None
    assert next_wake_at_us(state, 10 * HOUR_US, {old}) == 12 * HOUR_US


FULL = replace(
    a_snapshot(
        a_waiting_list([(0, a_gang(), 3), (1, MIXED, 0), (0, MIXED, 1)]),
        queues=(
            Queue(name="a", budget=Budget(gpu_seconds=1, window_seconds=60)),
            Queue(name="b", order=OrderPolicy.FAIR_USERS, quotas=(a_quota(4),)),
        ),
        usage=(Usage(queue="b", flavor="default", resource="gpu", amount=3),),
    ),
    held=(Held(queue="b", user="ann", jobs=1, gpus=3),),
    spans=(Span(queue="a", gpus=2, since_us=5), Span(queue="a", gpus=4, since_us=1, until_us=3)),
    user_usage=(UserUsage(queue="b", user="bob", usage=9),),
)


def test_a_state_as_a_value_is_the_value_it_was_made_of() -> None:
    again = snapshot_of(a_state(FULL), serial=FULL.serial)
    assert repr(replace(again, spans=())) == repr(replace(FULL, spans=()))
    assert set(again.spans) == set(FULL.spans)
    assert class_ids_of(a_state(FULL)) == (0, 1)


def test_a_pass_leaves_no_trace_in_what_a_state_is_worth() -> None:
    state = a_state(FULL)
    before = repr(snapshot_of(state, serial=1))
    assert len(decide(state, 0, 100).admitted) == 2
    assert repr(snapshot_of(state, serial=1)) == before


def test_a_grant_names_the_master_first_and_charges_in_order() -> None:
    workers_first = RequestClass(pod_sets=MIXED.pod_sets[::-1])
    state = a_state(a_snapshot(a_waiting_list([(0, workers_first, 0)]), fleet=a_fleet()))
    (admit,) = admits_of(state, decide(state, 0, 100))
    assert [(pod.pod_set, pod.index) for pod in admit.placements] == [
        ("Master", 0),
        ("Worker", 0),
        ("Worker", 1),
    ]
    assert admit.charges == (
        Charge(flavor="default", resource="cpu", amount=5000),
        Charge(flavor="default", resource="gpu", amount=2),
        Charge(flavor="default", resource="pods", amount=3),
    )


def test_a_head_is_the_first_that_stays_and_that_no_cap_keeps_back() -> None:
    queue = Queue(name="default", blocking=Blocking.STRICT, caps=Caps(gpus_per_job=8))
    gangs = [a_gang(gpu=9), a_gang(gpu=8), a_gang(gpu=7)]
    jobs = a_waiting_list([(0, gang, 3 - at) for at, gang in enumerate(gangs)])
    state = a_state(a_snapshot(jobs, queues=(queue,)))
    assert capped_classes(state, "default") == {0}
    assert head_of(state, "default", (), 0) == ("default", 1)
    second = state.lines.table.find(2)
    assert second is not None
    assert head_of(state, "default", {second}, 0) == ("default", 2)
    assert head_of(state, "default", range(3), 0) is None
