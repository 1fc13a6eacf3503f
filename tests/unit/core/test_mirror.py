"""The mirror: rows in, one snapshot out, whatever the order."""

import numpy as np

from gateway.core.admission import Usage
from gateway.core.devices.seen import DeviceSeen, NodeSeen
from gateway.core.mirror import ChargeRow, ClassRow, DefinitionRows, JobRow, Mirror, MirrorRows
from gateway.core.queues.definitions import Queue
from gateway.core.vocabulary import DeviceHealth, DeviceKind, JobState
from tests.builders import DEFAULT_FLAVOR, a_device, a_gang, a_node, devices_of

DEFINITIONS = DefinitionRows(1, (Queue(name="default"),), (), (DEFAULT_FLAVOR,))


def a_job(job_id: int, state: JobState = JobState.PENDING, *, poisoned: bool = False) -> JobRow:
    return JobRow(
        job_id=job_id,
        version=1,
        queue="default",
        class_id=7,
        priority=0,
        submitted_us=job_id,
        state=state,
        is_quarantined=poisoned,
    )


def a_mirror(**rows: object) -> Mirror:
    mirror = Mirror()
    mirror.apply(MirrorRows(classes=(ClassRow(7, a_gang()),), definitions=DEFINITIONS))
    mirror.apply(MirrorRows(**rows))  # type: ignore[arg-type]  # fields by name
    return mirror


def waiting_ids(mirror: Mirror) -> list[int]:
    return [int(job_id) for job_id in mirror.snapshot(1).waiting.job_id]


def test_pending_jobs_wait_and_all_others_do_not() -> None:
    jobs = (a_job(3), a_job(1), a_job(2, JobState.RUNNING), a_job(4, poisoned=True))
    assert waiting_ids(a_mirror(jobs=jobs)) == [1, 3]


def test_a_started_job_leaves_the_waiting_set() -> None:
    mirror = a_mirror(jobs=(a_job(1), a_job(2)))
    assert waiting_ids(mirror) == [1, 2]
    mirror.apply(MirrorRows(jobs=(a_job(1, JobState.RESERVED),)))
    assert waiting_ids(mirror) == [2]


def test_jobs_of_an_unknown_class_or_queue_wait_for_that_row() -> None:
    stray = a_job(2)._replace(queue="later")
    mirror = a_mirror(jobs=(a_job(1)._replace(class_id=8), stray, a_job(3)))
    assert waiting_ids(mirror) == [3]
    assert mirror.class_ids() == (7,)
    queues = (*DEFINITIONS.queues, Queue(name="later"))
    mirror.apply(
        MirrorRows(
            classes=(ClassRow(8, a_gang(gpu=2)),), definitions=DEFINITIONS._replace(queues=queues)
        )
    )
    snapshot = mirror.snapshot(2)
    assert snapshot.waiting.job_id.tolist() == [1, 2, 3]
    assert snapshot.waiting.classes == (a_gang(), a_gang(gpu=2))
    assert snapshot.waiting.request_class.tolist() == [1, 0, 0]
    assert mirror.class_ids() == (7, 8)


def test_nodes_of_equal_slots_share_one_machine_type() -> None:
    nodes = (a_node(1), a_node(2, machine_type="other"), a_node(3))
    devices = (*devices_of(1), *devices_of(2), *devices_of(3, 4))
    fleet = a_mirror(nodes=nodes, devices=devices).snapshot(1).fleet
    assert fleet.machine.tolist() == [0, 0, 1]
    assert [len(machine.gpus) for machine in fleet.machines] == [8, 4]


def test_only_healthy_unheld_devices_that_nobody_else_uses_are_free() -> None:
    changes: list[dict[str, object]] = [
        {"health": DeviceHealth.UNHEALTHY},
        {"is_foreign": True},
        {"units_free": 99},
        {"is_present": False},
        {},
    ]
    devices = tuple(a_device(1, DeviceKind.GPU, i, **change) for i, change in enumerate(changes))
    fleet = a_mirror(nodes=(a_node(1),), devices=devices).snapshot(1).fleet
    assert fleet.gpu_free.tolist() == [0b10000]
    assert fleet.gpu_all.tolist() == [0b10111]
    assert len(fleet.machines[0].gpus) == 5


def test_a_missing_ordinal_is_never_free() -> None:
    devices = (a_device(1, DeviceKind.RDMA, 0), a_device(1, DeviceKind.RDMA, 2))
    fleet = a_mirror(nodes=(a_node(1),), devices=devices).snapshot(1).fleet
    assert fleet.nic_free.tolist() == [0b101]
    assert [slot.ordinal for slot in fleet.machines[0].nics] == [0, 2]


def test_devices_beyond_a_mask_are_left_alone() -> None:
    devices = (a_device(1, DeviceKind.RDMA, 61), a_device(1, DeviceKind.RDMA, 62))
    fleet = a_mirror(nodes=(a_node(1),), devices=devices).snapshot(1).fleet
    assert fleet.nic_free.tolist() == [1 << 61]


def test_absent_nodes_are_no_part_of_the_fleet_and_the_rest_is_sorted() -> None:
    nodes = (a_node(3), a_node(1), a_node(2, is_present=False))
    fleet = a_mirror(nodes=nodes).snapshot(1).fleet
    assert fleet.names == ("node-01", "node-03")
    assert fleet.is_available.tolist() == [True, True]


def test_amounts_are_columns_with_zero_where_a_node_has_none() -> None:
    special = a_node(1, total={"cpu": 5, "fpga": 2}, free={"cpu": 4, "fpga": 1})
    fleet = a_mirror(nodes=(special, a_node(2, total={"cpu": 7}))).snapshot(1).fleet
    assert fleet.resources == ("cpu", "memory", "pods", "fpga")
    assert fleet.total.tolist() == [[5, 0, 0, 2], [7, 0, 0, 0]]


def test_live_charges_add_up_and_ended_ones_do_not_count() -> None:
    rows = (
        ChargeRow(1, "default", "default", "gpu", 4, is_live=True, attempt_id=1),
        ChargeRow(2, "default", "default", "gpu", 2, is_live=True, attempt_id=2),
        ChargeRow(3, "default", "default", "gpu", 9, is_live=False, attempt_id=3),
    )
    mirror = a_mirror(charges=rows)
    used = Usage(queue="default", flavor="default", resource="gpu", amount=6)
    assert mirror.snapshot(1).usage == (used,)
    mirror.apply(MirrorRows(charges=(rows[0]._replace(is_live=False),)))
    assert mirror.snapshot(2).usage[0].amount == 2


def test_a_charge_that_is_read_once_more_changes_nothing() -> None:
    mirror = a_mirror(charges=(ChargeRow(1, "default", "default", "gpu", 5, is_live=True),))
    before = mirror.state.version
    mirror.apply(MirrorRows(charges=(ChargeRow(1, "default", "default", "gpu", 5, is_live=True),)))
    assert mirror.state.version == before


def test_only_what_changed_is_built_again() -> None:
    mirror = a_mirror(jobs=(a_job(1),), nodes=(a_node(1),), devices=tuple(devices_of(1)))
    first = mirror.snapshot(1)
    mirror.apply(MirrorRows(jobs=(a_job(2),)))
    second = mirror.snapshot(2)
    assert second.fleet is first.fleet
    mirror.apply(MirrorRows(devices=(a_device(1, DeviceKind.GPU, 0, units_free=0),)))
    third = mirror.snapshot(3)
    assert third.fleet.gpu_free.tolist() == [0b11111110]
    assert np.array_equal(second.fleet.gpu_free, [0b11111111])


def test_the_inventory_is_incomplete_until_said_otherwise() -> None:
    mirror = a_mirror()
    assert not mirror.snapshot(1).fleet.is_complete
    mirror.apply(MirrorRows(is_inventory_complete=True))
    assert mirror.snapshot(2).fleet.is_complete
    assert mirror.snapshot(3).serial == 3


def test_a_device_that_inventory_sees_is_healthy_and_ours_unless_said_otherwise() -> None:
    device = DeviceSeen(kind=DeviceKind.GPU, ordinal=0, name="gpu0")
    node = NodeSeen(name="n", uid="u", machine_type="m", health=DeviceHealth.HEALTHY, labels={})
    assert device.health is DeviceHealth.HEALTHY
    assert not device.is_foreign
    assert node.devices == ()
