"""What a warm state meets rarely: loads from nothing, strangers, budgets that come and go."""

import numpy as np

from gateway.core.mirror import ChargeRow, ClassRow, DefinitionRows, Mirror, MirrorRows
from gateway.core.placing.room import Room
from gateway.core.policies.placement import pack
from gateway.core.queues.definitions import Budget, Cohort, Queue
from gateway.core.queues.share import reaching
from gateway.core.queues.tree import QuotaTree
from gateway.core.waiting.alarms import Alarms
from gateway.core.waiting.lines import Lines
from gateway.core.waiting.table import NewJob
from tests.builders import DEFAULT_FLAVOR, a_fleet, a_gang, a_node, a_pod_set, a_quota, devices_of

DAY_US = 86_400_000_000


def a_job(job_id: int, queue: str = "default", class_id: int = 7) -> NewJob:
    return NewJob(job_id, 1, queue, class_id, "ann", 0, 0, job_id)


def definitions(budget: Budget | None = None) -> DefinitionRows:
    return DefinitionRows(1, (Queue(name="default", budget=budget),), (), (DEFAULT_FLAVOR,))


def a_gpu_charge(charge_id: int, since_us: int, until_us: int = 0) -> ChargeRow:
    return ChargeRow(
        charge_id=charge_id,
        queue="default",
        flavor="default",
        resource="gpu",
        amount=8,
        is_live=not until_us,
        user="ann",
        reserved_us=since_us,
        closed_us=until_us,
        attempt_id=charge_id,
    )


def test_a_load_from_nothing_waits_like_jobs_that_came_one_by_one() -> None:
    mirror = Mirror()
    mirror.apply(MirrorRows(classes=(ClassRow(7, a_gang()),), definitions=definitions()))
    mirror.apply(MirrorRows(waiting=[a_job(1), a_job(2)]))
    mirror.apply(MirrorRows(waiting=[a_job(2), a_job(3)]))
    assert mirror.snapshot(1).waiting.job_id.tolist() == [1, 2, 3]
    assert len(mirror.setting().waiting) == 0


def test_a_run_that_nobody_looked_at_is_sorted_when_it_is_walked() -> None:
    lines = Lines({})
    lines.define([Queue(name="default")])
    lines.add([a_job(2), a_job(1)])
    (group,) = lines.lines["default"].groups.values()
    assert [entry[2] for entry in group.run.walk()] == [1, 2]


def test_jobs_of_an_unknown_queue_or_class_are_strangers() -> None:
    lines = Lines({})
    lines.define([Queue(name="default")])
    lines.add([a_job(1), a_job(2, queue="gone"), a_job(3, class_id=9)])
    assert lines.strangers({7}) == [2, 3]
    assert lines.strangers({7, 9}) == [2]


def test_many_alarms_ring_from_the_sorted_part_and_from_the_newcomers() -> None:
    alarms = Alarms()
    alarms.set(np.arange(600), np.arange(600))
    alarms.set(np.array([1]), np.array([900]))
    assert list(alarms.due(2)) == [0, 1, 900, 2]
    assert alarms.next_at() == 3


def test_a_budget_counts_what_was_used_before_it_and_forgets_what_ended_a_window_ago() -> None:
    mirror = Mirror()
    mirror.apply(MirrorRows(definitions=definitions()))
    live = a_gpu_charge(1, since_us=5)
    mirror.apply(MirrorRows(charges=(live,)))
    assert mirror.state.holdings.spans == {}, "nobody counts it without a budget"

    daily = Budget(gpu_seconds=100, window_seconds=86_400)
    mirror.apply(MirrorRows(definitions=definitions(daily)))
    assert mirror.state.holdings.spans == {"default": ((8, 5, 0),)}
    ended = (a_gpu_charge(1, 5, 10), a_gpu_charge(2, 20, DAY_US + 10))
    mirror.apply(MirrorRows(charges=ended))
    # The first ended a whole window before the last one did.
    assert mirror.state.holdings.spans == {"default": ((8, 20, DAY_US + 10),)}
    mirror.apply(MirrorRows(definitions=definitions()))
    assert mirror.state.holdings.spans == {}


def test_usage_of_users_is_taken_and_told() -> None:
    mirror = Mirror()
    mirror.apply(MirrorRows(definitions=definitions(), usage={"default": {"ann": 3}}))
    (told,) = mirror.snapshot(1).user_usage
    assert (told.queue, told.user, told.usage) == ("default", "ann", 3)


def test_a_pair_that_nobody_limits_reaches_no_cohort() -> None:
    queue = Queue(name="q", cohort="lab", quotas=(a_quota(8, lending=2),))
    tree = QuotaTree((queue,), (Cohort(name="lab"),))
    asked = {("default", "gpu"): 7, ("default", "fpga"): 1}
    # Six of the eight are never lent, so one of the seven is seen above.
    assert reaching(tree.queues["q"], tree.cohorts["lab"], asked) == {("default", "gpu"): 1}


def test_a_room_follows_more_node_states_than_it_began_with() -> None:
    nodes = [a_node(n, free={"cpu": 10 * n, "memory": 2**30, "pods": 99}) for n in range(1, 300)]
    fleet = a_fleet(nodes)
    room, everywhere = Room(fleet), np.ones(len(fleet), dtype=np.bool_)
    pod_set = a_pod_set(count=99, cpu=10)
    ids = fleet.node_id.tolist()
    before = room.capacity(pod_set, everywhere)
    assert before.tolist() == [min(n, 99) for n in ids]
    (attempt,) = room.attempts((pod_set,), {"Worker": everywhere})
    for row in range(len(fleet)):
        room.take_pods(row, attempt.asks[0].fits, 1)
    assert room.capacity(pod_set, everywhere).tolist() == [min(n - 1, 98) for n in ids]
    assert room.free[:, 0].tolist() == [10 * (n - 1) for n in ids]
    room.back_to(0)
    assert room.capacity(pod_set, everywhere).tolist() == before.tolist()


def test_more_pods_than_a_node_has_devices_for_take_nothing() -> None:
    fleet = a_fleet()
    room, everywhere = Room(fleet), np.ones(len(fleet), dtype=np.bool_)
    (attempt,) = room.attempts((a_pod_set(count=9, gpu=1),), {"Worker": everywhere})
    assert room.take_pods(0, attempt.asks[0].fits, 9) == []
    assert room.gpu_free.tolist() == [0xFF, 0xFF]


def test_a_gang_takes_the_fullest_of_many_nodes() -> None:
    nodes = [
        a_node(n, free={"cpu": 9000 - 100 * (n % 7), "memory": 2**40, "pods": 99})
        for n in range(30)
    ]
    fleet = a_fleet(nodes, [device for n in range(30) for device in devices_of(n)])
    room, everywhere = Room(fleet), np.ones(len(fleet), dtype=np.bool_)
    places = pack(room, (a_pod_set(count=3, gpu=8),), {"Worker": everywhere})
    assert places is not None
    taken = [int(fleet.node_id[place.row]) for place in places["Worker"]]
    # All have the same GPUs free, so the least CPU decides, then the name.
    assert taken == [6, 13, 20]
