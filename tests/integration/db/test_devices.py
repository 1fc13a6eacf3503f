"""The fleet for people: pages, who holds what, and who may know it."""

import pytest

from gateway.core.vocabulary import DeviceHealth, DeviceKind, Role
from gateway.db.events import EventFilter, list_events
from gateway.errors import Denied, InvalidInput, NotFound
from gateway.schemas.views import DeviceView
from gateway.service.context import Caller, Gateway
from gateway.service.devices import (
    DeviceFilter,
    cordon_node,
    get_device,
    get_node,
    list_devices,
    list_nodes,
    uncordon_node,
)
from tests.db_rows import GIB, a_grant, a_pod, add_job, add_nodes, reserve, seen_node

ADMIN = Caller(name="root", role=Role.ADMIN)
ANN = Caller(name="ann", namespaces=("team-a",))
BEN = Caller(name="ben", namespaces=("team-b",))


@pytest.fixture
def fleet(gateway: Gateway) -> Gateway:
    """Give a gateway with three nodes, where a job of team-a holds both GPUs of the first."""
    add_nodes(gateway.database, *[seen_node(f"node-{name}") for name in "abc"])
    grant = a_grant(add_job(gateway.database, "one"), a_pod(gpus=(0, 1)))
    gateway.database.run_write(lambda writer: reserve(writer, grant))
    return gateway


def every_device(gateway: Gateway, caller: Caller, wanted: DeviceFilter) -> list[DeviceView]:
    found: list[DeviceView] = []
    cursor = ""
    while True:
        page = list_devices(gateway, caller, wanted, cursor, 2)
        found += page.items
        cursor = page.next_cursor
        if not cursor:
            return found


def test_a_node_shows_what_is_free(fleet: Gateway) -> None:
    node = get_node(fleet, BEN, "node-a")
    assert (node.gpus_total, node.gpus_free, node.rdma_total, node.rdma_free) == (2, 0, 2, 2)
    assert (node.cpu_millis_total, node.cpu_millis_free) == (16_000, 15_000)
    assert node.memory_bytes_free == 63 * GIB


def test_nodes_come_page_by_page(fleet: Gateway) -> None:
    first = list_nodes(fleet, ANN, "", 2)
    last = list_nodes(fleet, ANN, first.next_cursor, 2)
    assert [node.name for node in (*first.items, *last.items)] == ["node-a", "node-b", "node-c"]
    assert last.next_cursor == ""


def test_every_device_comes_once_in_order(fleet: Gateway) -> None:
    found = every_device(fleet, ANN, DeviceFilter())
    places = [(device.node, device.kind, device.ordinal) for device in found]
    assert len(places) == 12
    assert places == sorted(places)


def test_a_holder_is_told_to_those_who_may_see_its_namespace(fleet: Gateway) -> None:
    held = DeviceFilter(kind=DeviceKind.GPU, free=False)
    for caller, knows in ((ADMIN, True), (ANN, True), (BEN, False)):
        devices = every_device(fleet, caller, held)
        assert [device.is_free for device in devices] == [False, False]
        names = {device.holder.job_name if device.holder else None for device in devices}
        assert names == ({"one"} if knows else {None})
    holder = get_device(fleet, ANN, every_device(fleet, ANN, held)[0].id).holder
    assert holder is not None
    assert (holder.namespace, holder.pod_set, holder.index) == ("team-a", "Worker", 0)


def test_free_devices_of_one_node_can_be_asked_for(fleet: Gateway) -> None:
    free = every_device(fleet, ANN, DeviceFilter(node="node-a", free=True))
    assert [(device.kind, device.ordinal) for device in free] == [("rdma", 0), ("rdma", 1)]


def test_a_cordon_shows_its_node_and_is_told_with_its_reason(fleet: Gateway) -> None:
    assert cordon_node(fleet, ADMIN, "node-b", " fan broken ").health is DeviceHealth.CORDONED
    assert uncordon_node(fleet, ADMIN, "node-b").health is DeviceHealth.HEALTHY
    assert uncordon_node(fleet, ADMIN, "node-b").health is DeviceHealth.HEALTHY
    with fleet.database.read() as connection:
        rows = list_events(connection, EventFilter())
    told = [(row["kind"], row["detail"]) for row in rows if row["actor"] == "root"]
    assert told == [("node_cordoned", "node-b: fan broken"), ("node_uncordoned", "node-b")]


def test_what_may_not_or_cannot_be_done_is_refused(fleet: Gateway) -> None:
    with pytest.raises(Denied):
        cordon_node(fleet, ANN, "node-a", "mine")
    with pytest.raises(InvalidInput) as refused:
        cordon_node(fleet, ADMIN, "node-a", " ")
    assert refused.value.pointer == "/reason"
    with pytest.raises(NotFound):
        uncordon_node(fleet, ADMIN, "node-z")
    with pytest.raises(NotFound):
        get_device(fleet, ANN, 4711)
    with pytest.raises(InvalidInput):
        list_devices(fleet, ANN, DeviceFilter(), "node-a/gpu/x")
