"""One cycle: who is admitted, in which order, onto what."""

import numpy as np
import pytest

from gateway.core.admission import (
    Charge,
    CyclePlan,
    PodPlacement,
    Policies,
    Snapshot,
    Usage,
    plan_cycle,
)
from gateway.core.jobs.request import RequestClass
from gateway.core.queues.definitions import Cohort, Flavor, Queue, Quota
from gateway.core.vocabulary import QueueState, Reason
from gateway.errors import InvalidInput
from tests.builders import (
    a_fleet,
    a_gang,
    a_node,
    a_pod_set,
    a_quota,
    a_snapshot,
    a_waiting_list,
    devices_of,
)


def plan(snapshot: Snapshot, budget: int = 1000) -> CyclePlan:
    return plan_cycle(snapshot, Policies(), now_us=0, budget=budget)


def admitted(snapshot: Snapshot, budget: int = 1000) -> list[int]:
    return [admit.job_id for admit in plan(snapshot, budget).admits]


ONE_NODE = a_fleet((a_node(1),), devices_of(1))


def test_all_that_fits_is_admitted_in_one_pass() -> None:
    jobs = a_waiting_list([(0, a_gang(gpu=4), 0)] * 5)
    answer = plan(a_snapshot(jobs))
    assert [admit.job_id for admit in answer.admits] == [1, 2, 3, 4]
    assert [hold.job_id for hold in answer.holds] == [5]


def test_an_admission_names_nodes_devices_and_charges() -> None:
    (admit,) = plan(a_snapshot(a_waiting_list([(0, a_gang(gpu=2, rdma=2, pods=2), 0)]))).admits
    assert admit.placements == (
        PodPlacement(pod_set="Worker", index=0, node_id=1, gpu_mask=0b11, nic_mask=0b11),
        PodPlacement(pod_set="Worker", index=1, node_id=1, gpu_mask=0b1100, nic_mask=0b1100),
    )
    assert Charge(flavor="default", resource="gpu", amount=4) in admit.charges
    assert Charge(flavor="default", resource="pods", amount=2) in admit.charges
    assert (admit.version, admit.queue) == (1, "default")


def test_the_master_comes_first_among_the_placements() -> None:
    gang = RequestClass(pod_sets=(a_pod_set(count=2, gpu=1), a_pod_set("Master")))
    (admit,) = plan(a_snapshot(a_waiting_list([(0, gang, 0)]))).admits
    assert [(p.pod_set, p.index) for p in admit.placements] == [
        ("Master", 0),
        ("Worker", 0),
        ("Worker", 1),
    ]


def test_in_a_queue_the_higher_priority_then_the_older_then_the_lower_id_comes_first() -> None:
    whole = a_gang(gpu=8)
    jobs = [(0, whole, 0), (0, whole, 5)]
    assert admitted(a_snapshot(a_waiting_list(jobs), ONE_NODE)) == [2]
    jobs = [(0, whole, 0), (0, whole, 0)]
    assert admitted(a_snapshot(a_waiting_list(jobs, submitted=[9, 3]), ONE_NODE)) == [2]
    assert admitted(a_snapshot(a_waiting_list(jobs, submitted=[3, 3]), ONE_NODE)) == [1]


def test_others_may_pass_a_head_that_does_not_fit() -> None:
    jobs = [(0, a_gang(gpu=8, pods=2), 9), (0, a_gang(gpu=2), 0)]
    assert admitted(a_snapshot(a_waiting_list(jobs), ONE_NODE)) == [2]


def test_queues_take_turns_by_share() -> None:
    queues = tuple(Queue(name=n, cohort="lab", quotas=(a_quota(2),)) for n in ("a", "b"))
    jobs = a_waiting_list([(0, a_gang(gpu=2), 9)] * 3 + [(1, a_gang(gpu=2), 0)] * 3)
    snapshot = a_snapshot(jobs, ONE_NODE, queues, (Cohort(name="lab", quotas=(a_quota(4),)),))
    assert admitted(snapshot) == [1, 4, 2, 5]


def test_usage_counts_and_that_of_a_queue_that_is_gone_does_not() -> None:
    queues = (Queue(name="a", quotas=(a_quota(4),)),)
    jobs = a_waiting_list([(0, a_gang(gpu=4), 0)])
    used = Usage(queue="a", flavor="default", resource="gpu", amount=1)
    gone = Usage(queue="gone", flavor="default", resource="gpu", amount=99)
    assert admitted(a_snapshot(jobs, queues=queues, usage=(gone,))) == [1]
    assert admitted(a_snapshot(jobs, queues=queues, usage=(used,))) == []


def test_a_paused_queue_admits_nobody() -> None:
    queues = (Queue(name="a", state=QueueState.PAUSED),)
    answer = plan(a_snapshot(a_waiting_list([(0, a_gang(), 0)]), queues=queues))
    assert answer.admits == ()
    assert answer.holds[0].reason is Reason.QUEUE_PAUSED
    assert [cause.detail for cause in answer.class_holds[0].causes] == ["queue a is paused"]


def test_who_is_not_reached_within_the_budget_is_told_so() -> None:
    jobs = a_waiting_list([(0, a_gang(gpu=2), 0)] * 3)
    answer = plan(a_snapshot(jobs), budget=2)
    assert [admit.job_id for admit in answer.admits] == [1, 2]
    assert [(hold.job_id, hold.reason) for hold in answer.holds] == [(3, Reason.NOT_REACHED)]


def test_a_failed_class_costs_the_budget_once() -> None:
    jobs = a_waiting_list([(0, a_gang(gpu=8, pods=2), 5)] * 20 + [(0, a_gang(gpu=1), 0)])
    answer = plan(a_snapshot(jobs, ONE_NODE), budget=2)
    assert [admit.job_id for admit in answer.admits] == [21]
    assert len(answer.class_holds) == 1


def test_nobody_waiting_gives_an_empty_plan() -> None:
    answer = plan(a_snapshot(a_waiting_list([])))
    assert (answer.admits, answer.holds, answer.class_holds, answer.serial) == ((), (), (), 1)


@pytest.mark.parametrize(
    ("kind", "policies"),
    [("fairness", Policies(fairness="magic")), ("placement", Policies(placement="magic"))],
)
def test_an_unknown_policy_is_refused(kind: str, policies: Policies) -> None:
    with pytest.raises(InvalidInput, match=f"unknown {kind} policy 'magic'"):
        plan_cycle(a_snapshot(a_waiting_list([(0, a_gang(), 0)])), policies, now_us=0, budget=9)


OLD = Flavor(name="a100", node_labels=(("gpu", "a100"),))
NEW = Flavor(name="h100", node_labels=(("gpu", "h100"),))
CPU_ONLY = Flavor(name="cpu", node_labels=(("gpu", "none"),))


def mixed_snapshot(gangs: list[RequestClass], queue: Queue) -> Snapshot:
    """Give one node of each flavor; only two have GPUs."""
    nodes = [a_node(i, labels=flavor.node_labels) for i, flavor in enumerate((OLD, NEW, CPU_ONLY))]
    fleet = a_fleet(nodes, [*devices_of(0), *devices_of(1)])
    base = a_snapshot(a_waiting_list([(0, gang, 0) for gang in gangs]), fleet, (queue,))
    return Snapshot(
        serial=base.serial,
        queues=base.queues,
        cohorts=(),
        flavors=(OLD, NEW, CPU_ONLY),
        usage=(),
        waiting=base.waiting,
        fleet=fleet,
    )


def flavors_used(snapshot: Snapshot) -> list[set[str]]:
    return [{charge.flavor for charge in admit.charges} for admit in plan(snapshot).admits]


def test_flavors_are_tried_in_the_queues_order_and_by_name_when_it_names_none() -> None:
    gang = a_gang(gpu=8)
    ordered = Queue(name="q", flavors=("h100", "missing", "a100"))
    assert flavors_used(mixed_snapshot([gang, gang], ordered)) == [{"h100"}, {"a100"}]
    assert flavors_used(mixed_snapshot([gang, gang], Queue(name="q"))) == [{"a100"}, {"h100"}]


def test_a_flavor_without_quota_is_passed_over() -> None:
    quotas = (
        Quota(flavor="h100", resource="gpu", nominal=4),
        Quota(flavor="a100", resource="gpu", nominal=8),
    )
    queue = Queue(name="q", flavors=("h100", "a100"), quotas=quotas)
    assert flavors_used(mixed_snapshot([a_gang(gpu=8)], queue)) == [{"a100"}]
    assert flavors_used(mixed_snapshot([a_gang(gpu=4)] * 3, queue)) == [
        {"h100"},
        {"a100"},
        {"a100"},
    ]


def test_a_master_without_gpus_may_use_another_flavor() -> None:
    gang = RequestClass(pod_sets=(a_pod_set("Master", cpu=8000), a_pod_set(count=1, gpu=8)))
    queue = Queue(
        name="q",
        flavors=("h100", "cpu"),
        quotas=(
            Quota(flavor="h100", resource="cpu", nominal=4000),
            Quota(flavor="h100", resource="gpu", nominal=8),
            Quota(flavor="cpu", resource="cpu", nominal=9000),
        ),
    )
    assert flavors_used(mixed_snapshot([gang], queue)) == [{"h100", "cpu"}]


def test_a_gang_without_gpus_uses_any_flavor() -> None:
    gang = RequestClass(pod_sets=(a_pod_set(count=2),))
    assert flavors_used(mixed_snapshot([gang], Queue(name="q", flavors=("cpu",)))) == [{"cpu"}]


def test_a_head_whose_flavor_ran_out_meanwhile_is_compared_again() -> None:
    quotas = (
        Quota(flavor="a100", resource="gpu", nominal=0),
        Quota(flavor="h100", resource="gpu", nominal=8),
    )
    left = Queue(name="left", cohort="lab", flavors=("a100", "h100"), quotas=quotas)
    right = Queue(name="right", cohort="lab", flavors=("a100",))
    base = mixed_snapshot([a_gang(gpu=8)], left)
    waiting = a_waiting_list([(0, a_gang(gpu=8), 0), (1, a_gang(gpu=8), 0)], submitted=[9, 1])
    cohort = Cohort(name="lab", quotas=(Quota(flavor="a100", resource="gpu", nominal=8),))
    snapshot = Snapshot(
        serial=1,
        queues=(left, right),
        cohorts=(cohort,),
        flavors=base.flavors,
        usage=(),
        waiting=waiting,
        fleet=base.fleet,
    )
    assert [(a.job_id, a.charges[1].flavor) for a in plan(snapshot).admits] == [
        (2, "a100"),
        (1, "h100"),
    ]


def test_a_plan_does_not_change_the_snapshot() -> None:
    snapshot = a_snapshot(a_waiting_list([(0, a_gang(gpu=8, rdma=8, pods=2), 0)]))
    before = snapshot.fleet.gpu_free.copy(), snapshot.fleet.free.copy()
    assert len(plan(snapshot).admits) == 1
    assert np.array_equal(snapshot.fleet.gpu_free, before[0])
    assert np.array_equal(snapshot.fleet.free, before[1])
