"""Inventory in the database: what appears, changes and vanishes, held or not."""

from collections.abc import Sequence

import pytest
from sqlalchemy import select

from gateway.core.devices.seen import NodeSeen
from gateway.core.vocabulary import DeviceHealth, DeviceKind
from gateway.db.engine import Database, Row
from gateway.db.events import EventFilter, list_events
from gateway.db.fleet import set_cordon, sync_inventory
from gateway.db.grants import GrantConflict
from gateway.db.inventory_reading import (
    DeviceQuery,
    amounts_of,
    device_counts,
    get_node,
    list_devices,
    list_nodes,
)
from gateway.db.tables import devices, nodes
from tests.db_rows import (
    GIB,
    NOW_US,
    a_grant,
    a_pod,
    add_job,
    add_nodes,
    free,
    reserve,
    seen_device,
    seen_devices,
    seen_node,
)


def sync(database: Database, *seen: NodeSeen) -> int:
    return database.run_write(lambda writer: sync_inventory(writer, seen, NOW_US))


def kinds_of_events(database: Database) -> list[str]:
    with database.read() as connection:
        return [row["kind"] for row in list_events(connection, EventFilter())]


def device_rows(database: Database) -> Sequence[Row]:
    with database.read() as connection:
        return list_devices(connection, DeviceQuery())


def hold_gpu(database: Database, gpus: Sequence[int] = (0,)) -> int:
    grant = a_grant(add_job(database, f"job-{gpus[0]}"), a_pod(gpus=gpus))
    return database.run_write(lambda writer: reserve(writer, grant))


def test_the_same_inventory_again_changes_nothing(database: Database) -> None:
    assert sync(database, seen_node("node-a"), seen_node("node-b")) == 2
    with database.read() as connection:
        before = connection.execute(select(nodes)).all(), connection.execute(select(devices)).all()
    assert sync(database, seen_node("node-b"), seen_node("node-a")) == 0
    with database.read() as connection:
        after = connection.execute(select(nodes)).all(), connection.execute(select(devices)).all()
    assert after == before
    assert kinds_of_events(database) == ["node_appeared", "node_appeared"]


def test_a_held_device_stays_held_when_it_vanishes_and_when_it_returns(
    database: Database,
) -> None:
    add_nodes(database)
    attempt_id = hold_gpu(database)
    sync(database, seen_node(devices=seen_devices()[1:]))
    gone = device_rows(database)[0]
    assert (gone["is_present"], gone["units_free"], gone["job_name"]) == (False, 0, "job-0")
    sync(database, seen_node())
    back = device_rows(database)[0]
    assert (back["is_present"], back["units_free"], back["is_free"]) == (True, 0, False)
    database.run_write(lambda writer: free(writer, attempt_id, NOW_US))
    assert device_rows(database)[0]["is_free"]


def test_a_device_freed_while_absent_is_still_granted_to_nobody(database: Database) -> None:
    add_nodes(database)
    attempt_id = hold_gpu(database)
    sync(database, seen_node(devices=seen_devices()[1:]))
    database.run_write(lambda writer: free(writer, attempt_id, NOW_US))
    grant = a_grant(add_job(database, "next"))
    with pytest.raises(GrantConflict):
        database.run_write(lambda writer: reserve(writer, grant))


def test_a_vanished_node_is_marked_and_comes_back_with_its_holder(database: Database) -> None:
    add_nodes(database)
    hold_gpu(database)
    sync(database)
    with database.read() as connection:
        row = get_node(connection, "node-a")
    assert row is not None
    assert not row["is_present"]
    sync(database, seen_node())
    assert device_rows(database)[0]["job_name"] == "job-0"
    assert kinds_of_events(database) == ["node_appeared", "node_vanished", "node_returned"]


def test_a_shrunken_node_has_nothing_free_rather_than_less_than_nothing(
    database: Database,
) -> None:
    add_nodes(database)
    attempt_id = hold_gpu(database)
    sync(database, seen_node(total={"cpu": 500, "memory": 64 * GIB, "pods": 110}))
    with database.read() as connection:
        assert amounts_of(connection, [1])[1]["cpu"] == (500, 0)
    database.run_write(lambda writer: free(writer, attempt_id, NOW_US))
    with database.read() as connection:
        assert amounts_of(connection, [1])[1]["cpu"] == (500, 500)


def test_foreign_use_is_not_free(database: Database) -> None:
    add_nodes(database, seen_node(foreign={"cpu": 4000, "pods": 3}))
    hold_gpu(database)
    with database.read() as connection:
        amounts = amounts_of(connection, [1])[1]
    assert (amounts["cpu"], amounts["pods"]) == ((16_000, 11_000), (110, 106))


def test_health_and_foreign_use_of_devices_are_taken_over(database: Database) -> None:
    add_nodes(database)
    sick = seen_device(DeviceKind.GPU, 0, health=DeviceHealth.UNHEALTHY)
    taken = seen_device(DeviceKind.GPU, 1, is_foreign=True)
    sync(database, seen_node(devices=(sick, taken, *seen_devices()[2:])))
    assert [row["is_free"] for row in device_rows(database)] == [False, False, True, True]
    with database.read() as connection:
        counts = device_counts(connection, [1])
    assert counts == {(1, "gpu"): (2, 0), (1, "rdma"): (2, 2)}


def test_a_node_that_fell_ill_is_told(database: Database) -> None:
    add_nodes(database)
    sync(database, seen_node(health=DeviceHealth.UNHEALTHY))
    sync(database, seen_node(uid="another-machine"))
    assert kinds_of_events(database) == ["node_appeared", "node_unhealthy", "node_replaced"]


def test_a_cordon_survives_inventory_and_is_set_once(database: Database) -> None:
    add_nodes(database)

    def cordon() -> bool:
        with database.write() as writer:
            row = get_node(writer.connection, "node-a")
            assert row is not None
            return set_cordon(writer, row, "broken fan")

    assert [cordon(), cordon()] == [True, False]
    sync(database, seen_node(labels={"zone": "b"}))
    with database.read() as connection:
        row = get_node(connection, "node-a")
    assert row is not None
    assert (row["is_cordoned"], row["cordon_reason"]) == (True, "broken fan")


def test_nodes_and_devices_are_listed_page_by_page(database: Database) -> None:
    add_nodes(database, *[seen_node(f"node-{name}") for name in "abc"])
    with database.read() as connection:
        assert [row["name"] for row in list_nodes(connection, "", 2)] == ["node-a", "node-b"]
        assert [row["name"] for row in list_nodes(connection, "node-b", 2)] == ["node-c"]
        after = ("node-a", "rdma", 0)
        page = list_devices(connection, DeviceQuery(after=after, limit=2))
        assert [(row["node"], row["kind"], row["ordinal"]) for row in page] == [
            ("node-a", "rdma", 1),
            ("node-b", "gpu", 0),
        ]
        wanted = DeviceQuery(node="node-c", kind="gpu", is_free=True)
        assert [row["ordinal"] for row in list_devices(connection, wanted)] == [0, 1]
        assert list_devices(connection, DeviceQuery(is_free=False)) == []
