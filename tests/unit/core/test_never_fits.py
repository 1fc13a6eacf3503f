"""What is refused at submit because no place could ever hold it."""

from dataclasses import replace

from gateway.core.admission import Policies, Snapshot, Usage, never_fits, plan_cycle
from gateway.core.devices.fleet import Fleet, Partition
from gateway.core.jobs.request import RequestClass
from gateway.core.queues.definitions import Cohort, Flavor, Queue
from gateway.core.vocabulary import DeviceHealth, PairRule, PartitionRule, Reason
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

LIMIT = "queue default can get at most 6 GPUs of flavor default, "
NOBODY = a_waiting_list([])


def why(gang: RequestClass, snapshot: Snapshot | None = None) -> list[str]:
    """Give the causes; empty when the gang might fit some day."""
    hold = never_fits(snapshot or a_snapshot(NOBODY), "default", gang)
    return [cause.detail for cause in hold.causes] if hold else []


def on(fleet: Fleet) -> Snapshot:
    return a_snapshot(NOBODY, fleet)


def test_a_pod_larger_than_any_node_is_refused_with_the_largest() -> None:
    assert why(a_gang(gpu=12)) == ["largest node has 8 GPUs; the pod asks for 12"]
    huge = RequestClass(pod_sets=(a_pod_set(cpu=300_000),))
    assert why(huge) == ["largest node has 192 CPU cores; the pod asks for 300 CPU cores"]


def test_an_unknown_resource_is_refused() -> None:
    exotic = RequestClass(pod_sets=(a_pod_set(fpga=1),))
    assert why(exotic) == ["largest node has 0 fpga; the pod asks for 1 fpga"]


def test_more_pods_than_the_idle_fleet_holds_are_refused() -> None:
    assert why(a_gang(gpu=8, pods=2)) == []
    assert why(a_gang(gpu=8, pods=3)) == [
        "the known nodes have room for 2 Worker pods when idle; the gang has 3"
    ]


def test_an_impossible_pair_rule_is_refused_by_name() -> None:
    (words,) = why(a_gang(gpu=1, rdma=3, pair=PairRule.SWITCH))
    assert words.startswith("no node has 1 GPU with 3 NICs near enough for pair rule 'switch'; ")
    assert words.endswith("the nearest that one has is 'numa'")
    assert why(a_gang(gpu=1, rdma=3, pair=PairRule.NUMA)) == []


def test_a_pair_rule_that_needs_topology_is_refused_where_nobody_knows_any() -> None:
    unknown = [row._replace(switch=-1, numa=-1) for row in devices_of(1)]
    fleet = a_fleet((a_node(1),), unknown)
    (words,) = why(a_gang(gpu=2, rdma=2, pair=PairRule.SWITCH), on(fleet))
    assert words.endswith("for pair rule 'switch'; the nearest that one has is 'node'")


def joined(gpus: int, rdma: int = 0) -> RequestClass:
    pods = a_pod_set(gpu=gpus, rdma=rdma)
    return RequestClass(pod_sets=(replace(pods, partition=PartitionRule.HONOUR),))


def test_a_partition_that_no_node_has_is_refused_with_the_largest_below() -> None:
    nvlink = [row._replace(nvlink_group=0) for row in devices_of(1)]
    fleet = a_fleet((a_node(1),), nvlink)
    assert why(joined(4), on(fleet)) == []
    assert why(joined(6, rdma=6), on(fleet)) == [
        "no node has an NVLink partition of 6 GPUs; the largest below that is one of 4 GPUs"
    ]
    whole = (Partition(8, 0xFF),)
    only_whole = tuple(replace(machine, partitions=whole) for machine in fleet.machines)
    assert why(joined(4), on(replace(fleet, machines=only_whole))) == [
        "no node has an NVLink partition of 4 GPUs"
    ]
    assert why(joined(12), on(fleet)) == ["largest node has 8 GPUs; the pod asks for 12"]


def test_where_memory_is_short_too_no_partition_is_promised() -> None:
    poor = {"cpu": 100, "memory": 2**40, "pods": 9}
    rows = [row._replace(nvlink_group=0) for row in (*devices_of(1), *devices_of(2))]
    rich = a_node(1)
    few = [row for row in rows if row.node_id == 2 or row.ordinal < 1]
    fleet = a_fleet((rich, a_node(2, total=poor, free=poor)), few)
    assert why(joined(3), on(fleet)) == ["no node has all of this at once: 1 CPU core and 3 GPUs"]


def test_what_no_single_node_has_at_once_is_refused() -> None:
    poor = {"cpu": 100, "memory": 2**40, "pods": 9}
    fleet = a_fleet((a_node(1), a_node(2, total=poor, free=poor)), devices_of(2))
    assert why(a_gang(gpu=8), on(fleet)) == [
        "no node has all of this at once: 1 CPU core and 8 GPUs"
    ]


def test_pod_sets_that_only_fit_apart_are_refused() -> None:
    gang = RequestClass(pod_sets=(a_pod_set("Master", gpu=5), a_pod_set(count=2, gpu=5)))
    assert why(gang) == [
        "Master and Worker pods each have a place on the idle nodes, but not all at the same time"
    ]


def test_without_a_proof_nothing_is_refused() -> None:
    pods = (a_pod_set("A", count=2, gpu=5), a_pod_set("B", count=2, gpu=4))
    assert why(RequestClass(pod_sets=pods)) == []


def test_cordoned_and_busy_nodes_count_as_places() -> None:
    busy = [row._replace(units_free=0) for row in devices_of(1)]
    fleet = a_fleet((a_node(1, health=DeviceHealth.CORDONED),), busy)
    assert why(a_gang(gpu=8), on(fleet)) == []


def test_an_incomplete_inventory_makes_nothing_impossible() -> None:
    assert why(a_gang(gpu=12), on(a_fleet(complete=False))) == []


def test_rules_that_no_node_meets_are_refused() -> None:
    picky = RequestClass(pod_sets=(replace(a_pod_set(), node_selector=(("zone", "x"),)),))
    assert why(picky) == ["no known node of flavor default is allowed for Worker pods"]


def test_a_queue_without_any_flavor_is_refused() -> None:
    snapshot = replace(a_snapshot(NOBODY), flavors=())
    assert why(a_gang(), snapshot) == ["queue default has no flavor"]


def test_quota_counts_at_its_most_and_current_use_does_not() -> None:
    queue = Queue(name="default", cohort="lab", quotas=(a_quota(4, borrowing=2),))
    usage = (Usage(queue="default", flavor="default", resource="gpu", amount=6),)
    snapshot = a_snapshot(
        NOBODY, None, (queue,), (Cohort(name="lab", quotas=(a_quota(8),)),), usage
    )
    assert why(a_gang(gpu=6), snapshot) == []
    assert why(a_gang(gpu=7), snapshot) == [LIMIT + "borrowing included; the gang asks for 7 GPUs"]


def test_each_flavor_gives_its_own_cause_and_one_that_works_is_enough() -> None:
    small = Flavor(name="small", node_labels=(("size", "s"),))
    large = Flavor(name="large", node_labels=(("size", "l"),))
    nodes = (a_node(1, labels=small.node_labels), a_node(2, labels=large.node_labels))
    fleet = a_fleet(nodes, [*devices_of(1, 4), *devices_of(2, 8)])
    snapshot = replace(on(fleet), flavors=(small, large))
    assert why(a_gang(gpu=8), snapshot) == []
    assert why(a_gang(gpu=9), snapshot) == [
        "largest node has 8 GPUs; the pod asks for 9",
        "largest node has 4 GPUs; the pod asks for 9",
    ]


def test_a_waiting_job_shows_it_when_the_fleet_shrank() -> None:
    snapshot = a_snapshot(a_waiting_list([(0, a_gang(), 0), (0, a_gang(gpu=9), 0)]))
    (hold,) = plan_cycle(snapshot, Policies(), now_us=0, budget=10).class_holds
    assert (hold.reason, hold.class_index) == (Reason.NEVER_FITS, 1)
    assert hold.causes[0].detail == "largest node has 8 GPUs; the pod asks for 9"
