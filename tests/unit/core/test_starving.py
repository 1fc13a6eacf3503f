"""Nodes are kept free for a gang that would starve beside a stream of small ones."""

import pytest

from gateway.core.admission import Admit, CyclePlan, Policies, plan_cycle, plan_pass
from gateway.core.admission.types import NodeHold
from gateway.core.mirror import MirrorRows
from gateway.core.queues.definitions import Queue
from gateway.core.vocabulary import Blocking, JobState, QueueState, Reason
from tests.builders import a_gang, a_node, a_quota, devices_of
from tests.unit.core.test_warm_passes import NOW_US, Site

AFTER_US = 1800 * 1_000_000
BIG, SMALL = a_gang(gpu=8), a_gang(gpu=4)
HOLD = NodeHold(flavor="default", job_id=10, node_ids=(1,))


class Crowd(Site):
    """A node of eight GPUs, two gangs of four on it, and a gang of eight that waits."""

    def begin(self, *queues: Queue) -> tuple[Admit, Admit]:
        self.define(*(queues or (Queue(name="q"),)))
        rows = MirrorRows(nodes=(a_node(1),), devices=tuple(devices_of(1)))
        self.mirror.apply(rows._replace(is_inventory_complete=True))
        self.submit(1, SMALL)
        self.submit(2, SMALL)
        first, second = self.turn().admits
        self.start(first)
        self.start(second)
        self.submit(10, BIG, submitted_us=NOW_US)
        return first, second

    def turn(self) -> CyclePlan:
        """Make a pass and let its holds come true, as the database would."""
        plan = self.plan()
        if plan.node_holds != self.mirror.state.node_holds:
            self.mirror.apply(MirrorRows(node_holds=plan.node_holds))
        return plan

    def later(self, us: int) -> "Crowd":
        self.now_us += us
        return self


@pytest.fixture
def crowd() -> Crowd:
    return Crowd()


def test_a_gang_that_nodes_alone_refuse_for_long_gets_the_next_free_ones(crowd: Crowd) -> None:
    first, second = crowd.begin()
    assert crowd.turn().node_holds == (), "not yet"
    crowd.later(AFTER_US)
    assert crowd.turn().node_holds == (HOLD,)
    crowd.submit(11, SMALL, submitted_us=NOW_US + 1)
    crowd.end(first)
    assert crowd.turn().admits == ()
    assert crowd.told["q", 1] is Reason.RESERVED_FOR_OTHER
    crowd.end(second)
    assert [admit.job_id for admit in crowd.turn().admits] == [10]
    assert crowd.mirror.state.node_holds == ()


def test_without_a_hold_the_stream_of_small_ones_goes_on(crowd: Crowd) -> None:
    first, _ = crowd.begin()
    crowd.turn()
    crowd.submit(11, SMALL, submitted_us=NOW_US + 1)
    crowd.end(first)
    assert crowd.decide() == [11]


def test_a_pass_is_due_when_somebody_begins_to_starve(crowd: Crowd) -> None:
    crowd.begin()
    assert crowd.turn().next_wake_at_us == NOW_US + AFTER_US
    crowd.later(AFTER_US)
    assert crowd.turn().next_wake_at_us is None


def test_whoever_comes_before_may_use_the_nodes(crowd: Crowd) -> None:
    first, _ = crowd.begin()
    crowd.turn()
    crowd.later(AFTER_US).turn()
    crowd.submit(11, SMALL, priority=1, submitted_us=crowd.now_us)
    crowd.end(first)
    plan = crowd.turn()
    assert [admit.job_id for admit in plan.admits] == [11]
    assert plan.node_holds == (HOLD,), "it goes on"


@pytest.mark.parametrize("state", [JobState.CANCELLED, JobState.HELD, JobState.FAILED])
def test_a_hold_ends_with_its_job(crowd: Crowd, state: JobState) -> None:
    first, _ = crowd.begin()
    crowd.later(AFTER_US).turn()
    crowd.submit(11, SMALL, submitted_us=NOW_US + 1)
    crowd.becomes(10, state)
    crowd.end(first)
    plan = crowd.turn()
    assert [admit.job_id for admit in plan.admits] == [11]
    assert plan.node_holds == ()


def test_a_hold_ends_with_the_quota_of_its_job(crowd: Crowd) -> None:
    first, _ = crowd.begin()
    crowd.later(AFTER_US)
    assert crowd.turn().node_holds == (HOLD,)
    crowd.submit(11, SMALL, submitted_us=NOW_US + 1)
    crowd.define(Queue(name="q", quotas=(a_quota(8),)))
    crowd.end(first)
    assert [admit.job_id for admit in crowd.turn().admits] == [11], "four of eight are in use"
    assert crowd.mirror.state.node_holds == ()


def test_the_next_one_that_starves_follows(crowd: Crowd) -> None:
    crowd.begin()
    crowd.submit(12, a_gang(gpu=7), submitted_us=NOW_US + 1)
    crowd.later(AFTER_US + 1)
    assert crowd.turn().node_holds == (HOLD,), "the oldest first, and it alone"
    assert crowd.turn().node_holds == (HOLD,)
    crowd.becomes(10, JobState.CANCELLED)
    crowd.turn()
    crowd.turn()
    (hold,) = crowd.mirror.state.node_holds
    assert hold.job_id == 12


def test_a_strict_head_need_not_wait(crowd: Crowd) -> None:
    crowd.begin(Queue(name="q", blocking=Blocking.STRICT), Queue(name="other"))
    assert crowd.turn().node_holds == (HOLD,)
    crowd.submit(11, SMALL, queue="other", submitted_us=NOW_US + 1)
    assert crowd.turn().admits == ()


def test_nodes_that_could_never_do_are_held_for_nobody(crowd: Crowd) -> None:
    crowd.begin()
    crowd.submit(12, a_gang(gpu=8, pods=2), submitted_us=0)
    crowd.later(AFTER_US)
    assert crowd.turn().node_holds == (HOLD,)


def test_a_cold_start_with_the_same_rows_keeps_the_same_nodes(crowd: Crowd) -> None:
    first, _ = crowd.begin()
    crowd.later(AFTER_US).turn()
    crowd.submit(11, SMALL, submitted_us=NOW_US + 1)
    crowd.end(first)
    cold = plan_cycle(crowd.mirror.snapshot(1), Policies(), crowd.now_us, 100)
    warm = plan_pass(crowd.mirror.state, 1, crowd.now_us, 100)
    assert cold.admits == warm.admits == ()
    assert cold.node_holds == warm.node_holds == (HOLD,)
    assert {hold.job_id: hold.reason for hold in cold.holds}[11] is Reason.RESERVED_FOR_OTHER


def test_others_are_told_for_whom_by_size_and_queue_alone(crowd: Crowd) -> None:
    first, _ = crowd.begin()
    crowd.later(AFTER_US).turn()
    crowd.submit(11, SMALL, submitted_us=NOW_US + 1)
    crowd.end(first)
    (told,) = [hold for hold in crowd.turn().class_holds if hold.class_index == 1]
    (cause,) = told.causes
    assert cause.detail == "it would fit on nodes that are held for an 8-GPU job of queue q"
    assert told.unblock == ("an 8-GPU job of queue q to start or leave",)


def test_behind_a_strict_head_nothing_is_held_any_more(crowd: Crowd) -> None:
    crowd.begin(Queue(name="q", blocking=Blocking.STRICT))
    assert crowd.turn().node_holds == (HOLD,)
    crowd.submit(12, a_gang(gpu=7), priority=1, submitted_us=crowd.now_us)
    assert crowd.turn().node_holds == (), "it cannot start"
    (hold,) = crowd.turn().node_holds
    assert hold.job_id == 12


def test_a_paused_queue_holds_nothing(crowd: Crowd) -> None:
    crowd.begin()
    crowd.later(AFTER_US)
    assert crowd.turn().node_holds == (HOLD,)
    crowd.define(Queue(name="q", state=QueueState.PAUSED))
    assert crowd.turn().node_holds == ()


def test_a_pass_that_is_cut_short_takes_no_hold_away(crowd: Crowd) -> None:
    crowd.begin()
    crowd.later(AFTER_US).turn()
    crowd.submit(13, a_gang(gpu=1), priority=9)
    assert crowd.plan(budget=0).node_holds == (HOLD,)


def test_a_hold_that_was_not_written_is_proposed_again(crowd: Crowd) -> None:
    crowd.begin()
    crowd.later(AFTER_US)
    assert crowd.plan().node_holds == (HOLD,)
    assert crowd.plan().node_holds == (HOLD,), "the commit of the first was lost"


def test_small_idle_nodes_are_not_held_for_nothing(crowd: Crowd) -> None:
    crowd.begin()
    small = MirrorRows(nodes=(a_node(2),), devices=tuple(devices_of(2, gpus=2)))
    crowd.mirror.apply(small)
    crowd.later(AFTER_US)
    assert crowd.turn().node_holds == (HOLD,)
