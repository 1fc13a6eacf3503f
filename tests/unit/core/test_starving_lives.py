"""Holds over many passes: bounded waits, newcomers to what is known not to fit, and lost writes."""

import pytest

from gateway.core.admission import Policies, plan_cycle
from gateway.core.admission.remedies import remedies
from gateway.core.admission.types import NodeHold, Snapshot
from gateway.core.admission.unblock import Unblock
from gateway.core.jobs.request import PodSetRequest, RequestClass
from gateway.core.mirror import MirrorRows
from tests.builders import a_fleet, a_gang, a_node, a_snapshot, waiting_jobs
from tests.unit.core.test_starving import AFTER_US, BIG, HOLD, SMALL, Crowd
from tests.unit.core.test_warm_passes import NOW_US

SHORT_US = 600 * 1_000_000


@pytest.fixture
def crowd() -> Crowd:
    return Crowd()


def wait_in_a_stream_us(crowd: Crowd, most_turns: int) -> int | None:
    """Give how long the large gang waits while two small ones take turns without a gap."""
    running, next_id = list(crowd.begin()), 100
    for _ in range(most_turns):
        crowd.later(SHORT_US // 2)
        crowd.submit(next_id, SMALL, submitted_us=crowd.now_us)
        next_id += 1
        if running:
            crowd.end(running.pop(0))
        for admit in crowd.turn().admits:
            if admit.job_id == HOLD.job_id:
                return crowd.now_us - NOW_US
            crowd.start(admit)
            running.append(admit)
    return None


def test_a_stream_of_small_ones_delays_a_large_gang_by_a_bounded_time(crowd: Crowd) -> None:
    waited_us = wait_in_a_stream_us(crowd, most_turns=40)
    assert waited_us is not None
    assert waited_us <= AFTER_US + 2 * SHORT_US


def test_without_holds_it_would_wait_for_ever(crowd: Crowd) -> None:
    crowd.mirror.state.policies = Policies(starvation_after_seconds=10**9)
    assert wait_in_a_stream_us(crowd, most_turns=40) is None


def test_an_older_job_that_joins_a_class_known_not_to_fit_is_seen_at_once(crowd: Crowd) -> None:
    crowd.begin()
    crowd.later(AFTER_US // 2)
    assert crowd.turn().node_holds == ()
    # It comes back with its old instant, as after a retry.
    crowd.submit(9, BIG, priority=1, submitted_us=0)
    crowd.later(AFTER_US // 2 - 1)
    (hold,) = crowd.turn().node_holds
    assert hold.job_id == 9


def test_when_the_one_that_would_starve_first_leaves_the_next_starves_in_its_own_time(
    crowd: Crowd,
) -> None:
    crowd.begin()
    crowd.submit(12, BIG, submitted_us=NOW_US + 100)
    assert crowd.turn().node_holds == ()
    crowd.mirror.state.lines.remove(10)
    crowd.later(AFTER_US)
    plan = crowd.turn()
    assert plan.node_holds == ()
    assert plan.next_wake_at_us == NOW_US + AFTER_US + 100
    crowd.later(100)
    (hold,) = crowd.turn().node_holds
    assert hold.job_id == 12


def test_when_holds_move_another_pass_follows_at_once(crowd: Crowd) -> None:
    crowd.begin()
    assert crowd.turn().is_complete
    assert not crowd.later(AFTER_US).turn().is_complete
    assert crowd.turn().is_complete


def test_holds_that_are_read_again_are_no_news(crowd: Crowd) -> None:
    crowd.begin()
    crowd.later(AFTER_US).turn()
    before = crowd.mirror.state.version
    crowd.mirror.apply(MirrorRows(node_holds=(HOLD,)))
    assert crowd.mirror.state.version == before


def test_a_hold_that_moves_to_another_job_lets_everybody_be_tried_again(crowd: Crowd) -> None:
    crowd.begin()
    crowd.later(AFTER_US).turn()
    other = NodeHold(flavor=HOLD.flavor, job_id=99, node_ids=HOLD.node_ids)
    crowd.mirror.apply(MirrorRows(node_holds=(other,)))
    assert crowd.turn().node_holds == (HOLD,), "a job that is gone holds nothing"


def test_for_whoever_is_kept_off_it_is_enough_that_the_holder_leaves(crowd: Crowd) -> None:
    first, _ = crowd.begin()
    crowd.later(AFTER_US).turn()
    crowd.submit(11, SMALL, submitted_us=crowd.now_us)
    crowd.submit(12, a_gang(gpu=6), submitted_us=crowd.now_us)
    crowd.end(first)
    crowd.turn()
    leaves = Unblock("an 8-GPU job of queue q to leave", ())
    assert leaves in remedies(crowd.mirror.state, 11, crowd.now_us)
    assert leaves not in remedies(crowd.mirror.state, 12, crowd.now_us)


@pytest.mark.parametrize("resource", ["cpu", "memory"])
def test_where_no_devices_are_asked_for_the_node_itself_is_held(resource: str) -> None:
    amounts = {resource: 1000, "pods": 10}
    node = a_node(1, total=amounts, free={**amounts, resource: 1})
    workers = PodSetRequest(name="Worker", count=1, per_pod=((resource, 1000),))
    waiting = waiting_jobs(
        (RequestClass(pod_sets=(workers,)),),
        queue=[0],
        request_class=[0],
    )
    snapshot: Snapshot = a_snapshot(waiting, a_fleet([node]))
    (hold,) = plan_cycle(snapshot, Policies(), now_us=AFTER_US, budget=10).node_holds
    assert hold.node_ids == (1,)
