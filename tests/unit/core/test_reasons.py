"""Why a gang waits: the primary reason, all causes with counts, and what would help."""

from dataclasses import replace

import pytest

from gateway.core.admission import ClassHold, Policies, Snapshot, Usage, plan_cycle
from gateway.core.devices.fleet import Fleet
from gateway.core.devices.rows import DeviceRow
from gateway.core.jobs.request import RequestClass
from gateway.core.queues.definitions import Cohort, Flavor, Queue
from gateway.core.vocabulary import DeviceHealth, DeviceKind, PairRule, Reason
from tests.builders import (
    a_fleet,
    a_gang,
    a_node,
    a_pod_set,
    a_quota,
    a_snapshot,
    a_tainted_node,
    a_waiting_list,
    devices_of,
)


def partly_free(node_id: int, gpus: int) -> list[DeviceRow]:
    """Give a node's devices with that many GPUs and NICs free, the last ones."""
    return [
        device._replace(units_free=0) if device.ordinal < 8 - gpus else device
        for device in devices_of(node_id)
    ]


def fleet_with_free(*gpus: int) -> Fleet:
    nodes = [a_node(i) for i in range(len(gpus))]
    return a_fleet(nodes, [row for i, free in enumerate(gpus) for row in partly_free(i, free)])


def hold_of(gang: RequestClass, fleet: Fleet | None = None, **more: object) -> ClassHold:
    """Give the answer for one waiting gang in the first queue."""
    snapshot = replace(a_snapshot(a_waiting_list([(0, gang, 0)]), fleet), **more)  # type: ignore[arg-type]  # fields by name
    (hold,) = plan_cycle(snapshot, Policies(), now_us=0, budget=10).class_holds
    return hold


def details(hold: ClassHold) -> list[str]:
    return [cause.detail for cause in hold.causes]


def test_too_few_free_devices_are_counted_node_by_node() -> None:
    nodes = (a_node(1), a_node(2), a_node(3), a_node(4, health=DeviceHealth.CORDONED))
    fleet = a_fleet(nodes, [row for i in range(1, 5) for row in partly_free(i, 2)])
    hold = hold_of(a_gang(gpu=4, pods=2), fleet)
    assert hold.reason is Reason.GANG_DOES_NOT_FIT
    assert details(hold) == [
        "3 of 4 nodes: fewer than 4 free GPUs",
        "1 of 4 nodes: cordoned",
    ]
    assert [(cause.count, cause.total) for cause in hold.causes] == [(3, 4), (1, 4)]
    assert hold.unblock == ("GPUs 0-5 to come free on node-01",)


def test_a_node_that_lacks_several_things_counts_for_each() -> None:
    poor = {"cpu": 500, "memory": 2**30, "pods": 0}
    fleet = a_fleet((a_node(1, free=poor),), [])
    gang = RequestClass(pod_sets=(a_pod_set(gpu=1, rdma=1, memory=2**31),))
    hold = hold_of(gang, replace(fleet, is_complete=False))
    assert hold.reason is Reason.NODES_UNAVAILABLE
    assert details(hold) == [
        "1 of 1 nodes: fewer than 1 free GPU",
        "1 of 1 nodes: fewer than 1 free NIC",
        "1 of 1 nodes: less than 1 free CPU core",
        "1 of 1 nodes: less than 2 free GiB of memory",
        "1 of 1 nodes: no pod may be added",
    ]


def test_enough_in_sum_but_in_pieces_is_fragmented() -> None:
    hold = hold_of(a_gang(gpu=4, pods=2), fleet_with_free(2, 4, 3))
    assert hold.reason is Reason.FRAGMENTED_DEVICES
    assert "1 of 3 nodes: room for 1 Worker pod; the gang has 2" in details(hold)


def test_unlike_pods_that_have_room_only_one_by_one_are_fragmented() -> None:
    pods = (a_pod_set("Master", gpu=5), a_pod_set(gpu=3))
    hold = hold_of(RequestClass(pod_sets=pods), fleet_with_free(6, 2))
    assert hold.reason is Reason.FRAGMENTED_DEVICES
    assert details(hold) == [
        "8 GPUs free in all, at most 6 on one node",
        "1 of 2 nodes: room for a Master pod, but not for the whole gang at once",
        "1 of 2 nodes: fewer than 5 free GPUs",
    ]


def test_free_devices_too_far_apart_are_not_aligned() -> None:
    far = [
        row
        if row.ordinal in ((0, 1) if row.kind is DeviceKind.GPU else (2, 3))
        else row._replace(units_free=0)
        for row in devices_of(1)
    ]
    hold = hold_of(a_gang(gpu=2, rdma=2, pair=PairRule.SWITCH), a_fleet((a_node(1),), far))
    assert hold.reason is Reason.NO_ALIGNED_DEVICES
    (detail,) = details(hold)
    assert detail == (
        "1 of 1 nodes: no free set of 2 GPUs with 2 NICs near enough for pair rule 'switch'"
        ": what is free lies apart"
    )
    assert hold.unblock == (
        "NICs 0-1 to come free on node-01",
        "accept pair rule 'numa' or 'node' or 'none'",
    )


def test_nodes_out_of_service_alone_are_unavailable() -> None:
    nodes = (a_node(1), a_node(2, health=DeviceHealth.UNHEALTHY))
    fleet = a_fleet(nodes, [*devices_of(1), *devices_of(2)])
    hold = hold_of(a_gang(gpu=8, pods=2), fleet)
    assert hold.reason is Reason.NODES_UNAVAILABLE
    assert "1 of 2 nodes: unhealthy" in details(hold)
    assert hold.unblock == ("node-02 to be back in service",)


def test_rules_of_nodes_are_named() -> None:
    nodes = (a_node(1), a_tainted_node(2), a_node(3, labels=(("zone", "a"),)))
    fleet = a_fleet(nodes, [*partly_free(1, 2), *devices_of(2), *devices_of(3)])
    flavors = (Flavor(name="default"), Flavor(name="b", node_labels=(("zone", "a"),)))
    queues = (Queue(name="default", flavors=("default",)),)
    hold = hold_of(a_gang(gpu=8), fleet, queues=queues, flavors=flavors)
    assert details(hold) == [
        "1 of 3 nodes: fewer than 8 free GPUs",
        "1 of 3 nodes: not of flavor default",
        "1 of 3 nodes: taint gpu=reserved not tolerated",
    ]


LAB = (Cohort(name="lab"),)
RESEARCH = Queue(name="research", cohort="lab", quotas=(a_quota(4, borrowing=4),))
PRODUCT = Queue(name="product", cohort="lab", quotas=(a_quota(8),))


def gpus_used(queue: str, amount: int) -> tuple[Usage, ...]:
    return (Usage(queue=queue, flavor="default", resource="gpu", amount=amount),)


def test_a_binding_borrowing_limit_is_named_with_numbers_on_the_path() -> None:
    hold = hold_of(
        a_gang(gpu=8), queues=(RESEARCH, PRODUCT), cohorts=LAB, usage=gpus_used("research", 4)
    )
    assert (hold.reason, hold.limiting) == (Reason.OVER_BORROWING_LIMIT, "research")
    assert details(hold) == [
        "asks for 8 GPUs of flavor default, 4 available: the borrowing limit of research binds"
    ]
    assert [(step.node, step.used, step.available) for step in hold.quota_path] == [
        ("research", 4, 4),
        ("lab", 4, 8),
    ]
    assert hold.unblock == ("raise the borrowing limit of research by 4 GPUs of flavor default",)


def test_an_exhausted_quota_is_over_quota() -> None:
    hold = hold_of(a_gang(gpu=8), queues=(PRODUCT,), cohorts=LAB, usage=gpus_used("product", 4))
    assert (hold.reason, hold.limiting) == (Reason.OVER_QUOTA, "lab")
    assert hold.unblock == ("raise the quota of lab by 4 GPUs of flavor default",)


def test_quota_and_nodes_together_are_told_as_one_complete_set() -> None:
    hold = hold_of(
        a_gang(gpu=8),
        fleet_with_free(3),
        queues=(PRODUCT,),
        cohorts=LAB,
        usage=gpus_used("product", 4),
    )
    assert hold.reason is Reason.OVER_QUOTA
    assert "1 of 1 nodes: fewer than 8 free GPUs" in details(hold)
    assert hold.unblock == (
        "raise the quota of lab by 4 GPUs of flavor default; and GPUs 0-4 to come free on node-00",
    )


def test_the_quota_path_is_shown_even_where_quota_is_not_the_reason() -> None:
    hold = hold_of(a_gang(gpu=8), fleet_with_free(3), queues=(PRODUCT,), cohorts=LAB)
    assert hold.limiting == ""
    assert [(step.node, step.requested) for step in hold.quota_path] == [("product", 8), ("lab", 8)]


def plan_holds(snapshot: Snapshot) -> list[ClassHold]:
    return list(plan_cycle(snapshot, Policies(), now_us=0, budget=100).class_holds)


def test_what_fitted_until_its_own_queue_was_served_is_behind_priority() -> None:
    jobs = [(0, a_gang(gpu=8), 3)] * 3
    (hold,) = plan_holds(a_snapshot(a_waiting_list(jobs)))
    assert hold.reason is Reason.BEHIND_PRIORITY
    assert details(hold) == ["it fitted until 2 jobs of its queue came first"]
    assert hold.unblock == ()


def test_what_fitted_until_other_queues_were_served_is_behind_fair_share() -> None:
    jobs = [(0, a_gang(gpu=8), 0), (1, a_gang(gpu=8, pods=2), 0)]
    queues = (Queue(name="a"), Queue(name="b"))
    (hold,) = plan_holds(a_snapshot(a_waiting_list(jobs), queues=queues))
    assert hold.reason is Reason.BEHIND_FAIR_SHARE
    assert details(hold) == ["it fitted until 1 job of a came first by fair share"]
    assert hold.unblock == ()


def test_only_the_first_classes_of_a_cycle_get_their_changes_tried() -> None:
    gangs = [RequestClass(pod_sets=(a_pod_set(cpu=1000 + i, gpu=8),)) for i in range(52)]
    jobs = a_waiting_list([(0, gang, 0) for gang in gangs])
    holds = plan_holds(a_snapshot(jobs, fleet_with_free(4)))
    assert [bool(hold.unblock) for hold in holds] == [True] * 50 + [False] * 2
    assert all(hold.causes for hold in holds)


def test_without_any_node_nothing_is_called_impossible() -> None:
    fleet = replace(a_fleet((a_node(1, is_present=False),)), is_complete=False)
    hold = hold_of(a_gang(), fleet)
    assert hold.reason is Reason.NODES_UNAVAILABLE
    assert details(hold) == ["no node is known yet"]
    assert hold.unblock == ()


@pytest.mark.parametrize("pods", [17, 20])
def test_sets_of_many_nodes_are_not_told(pods: int) -> None:
    hold = hold_of(a_gang(gpu=8, pods=pods), fleet_with_free(*[1] * pods))
    assert hold.reason is Reason.GANG_DOES_NOT_FIT
    assert hold.unblock == ()


def test_busy_nodes_of_an_incomplete_inventory_are_just_busy() -> None:
    hold = hold_of(a_gang(gpu=8), replace(fleet_with_free(4), is_complete=False))
    assert hold.reason is Reason.GANG_DOES_NOT_FIT


def test_no_change_helps_where_the_nodes_themselves_are_too_small() -> None:
    small = replace(a_fleet((a_node(1),), devices_of(1, 2)), is_complete=False)
    assert hold_of(a_gang(gpu=4), small).unblock == ()


def test_pods_on_several_nodes_are_each_counted_where_they_go() -> None:
    pods = (a_pod_set("Master", gpu=8), a_pod_set(gpu=8, cpu=2000))
    full = {"cpu": 500, "memory": 2**40, "pods": 5}
    nodes = (a_node(0, free=full), a_node(1, free=full))
    fleet = a_fleet(nodes, [*partly_free(0, 8), *partly_free(1, 3)])
    hold = hold_of(RequestClass(pod_sets=pods), fleet)
    assert " and ".join(hold.unblock) == (
        "1.5 CPU cores to come free on node-00 and "
        "0.5 CPU cores and GPUs 0-4 to come free on node-01"
    )


def test_a_flavor_without_quota_left_does_not_hide_that_the_other_is_busy() -> None:
    old, new = (Flavor(name=n, node_labels=(("gpu", n),)) for n in ("a", "b"))
    nodes = [a_node(i, labels=each.node_labels) for i, each in enumerate((old, new))]
    fleet = a_fleet(nodes, [*devices_of(0), *partly_free(1, 2)])
    queue = Queue(name="default", quotas=(replace(a_quota(0), flavor="a"),))
    hold = hold_of(a_gang(gpu=8), fleet, queues=(queue,), flavors=(old, new))
    assert hold.reason is Reason.GANG_DOES_NOT_FIT
    assert details(hold) == [
        "asks for 8 GPUs of flavor a, 0 available: the quota of default binds",
        "1 of 2 nodes: fewer than 8 free GPUs",
        "1 of 2 nodes: of flavor a, for which quota is not enough",
    ]


def test_answers_after_the_same_admissions_are_worked_out_once() -> None:
    jobs = [(0, a_gang(gpu=8), 3)] * 2 + [(0, a_gang(gpu=g), 0) for g in (1, 2)]
    holds = plan_holds(a_snapshot(a_waiting_list(jobs)))
    assert {hold.reason for hold in holds} == {Reason.BEHIND_PRIORITY}


def test_only_the_changes_that_are_needed_together_are_told() -> None:
    nodes = (a_node(1), a_node(2, health=DeviceHealth.CORDONED))
    fleet = a_fleet(nodes, [*partly_free(1, 3), *devices_of(2)])
    hold = hold_of(a_gang(gpu=8, rdma=8, pods=2, pair=PairRule.SWITCH), fleet)
    assert hold.reason is Reason.GANG_DOES_NOT_FIT
    assert hold.unblock == (
        "GPUs 0-4 and NICs 0-4 to come free on node-01; and node-02 to be back in service",
    )


def test_nodes_that_have_room_already_are_not_asked_to_come_free() -> None:
    hold = hold_of(a_gang(gpu=8, pods=2), fleet_with_free(8, 7))
    assert hold.unblock == ("GPU 0 to come free on node-01",)


def test_a_cause_that_two_pod_sets_share_is_told_once() -> None:
    gang = RequestClass(pod_sets=(a_pod_set("Master", 1, gpu=2), a_pod_set("Worker", 3, gpu=2)))
    full = a_fleet((a_node(1), a_node(2)), [*partly_free(1, 0), *partly_free(2, 0)])
    snapshot = a_snapshot(a_waiting_list([(0, gang, 0)]), fleet=full)
    (hold,) = plan_cycle(snapshot, Policies(), 0, 9).class_holds
    details = [cause.detail for cause in hold.causes]
    assert details == ["2 of 2 nodes: fewer than 2 free GPUs"]
