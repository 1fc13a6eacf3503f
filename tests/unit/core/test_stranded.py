"""How far free GPUs would go: what is in pieces, or beside taken NICs, is not counted as room."""

from gateway.core.devices.rows import DeviceRow
from gateway.core.placing.room import Room
from gateway.core.placing.stranded import Stranding, stranding
from gateway.core.vocabulary import DeviceHealth, DeviceKind
from tests.builders import a_device, a_fleet, a_node, devices_of


def a_pair(node_id: int, ordinal: int, *, nic_is_free: bool = True) -> list[DeviceRow]:
    """Give a GPU and a NIC under a switch of their own."""
    units = 100 if nic_is_free else 0
    return [
        a_device(node_id, DeviceKind.GPU, ordinal, switch=ordinal, numa=0),
        a_device(node_id, DeviceKind.RDMA, ordinal, switch=ordinal, numa=0, units_free=units),
    ]


def test_pieces_on_several_nodes_are_no_room_for_large_pods() -> None:
    fleet = a_fleet(
        [a_node(1), a_node(2)],
        [*devices_of(1, gpus=3, nics=0), *devices_of(2, gpus=3, nics=0)],
    )
    assert stranding(Room(fleet)) == (
        Stranding(gpus=1, ideal=6, fitting=6, aligned=0),
        Stranding(gpus=2, ideal=3, fitting=2, aligned=0),
        Stranding(gpus=3, ideal=2, fitting=2, aligned=0),
    )


def test_gpus_beside_taken_nics_have_room_but_not_aligned() -> None:
    devices = [*a_pair(1, 0), *a_pair(1, 1, nic_is_free=False)]
    (one, two) = stranding(Room(a_fleet([a_node(1)], devices)))
    assert one == Stranding(gpus=1, ideal=2, fitting=2, aligned=1)
    assert two == Stranding(gpus=2, ideal=1, fitting=1, aligned=0)


def test_nodes_out_of_use_count_nowhere_and_no_gpu_at_all_is_no_size() -> None:
    cordoned = a_node(1, health=DeviceHealth.CORDONED)
    assert [each.ideal for each in stranding(Room(a_fleet([cordoned], devices_of(1))))] == [0] * 4
    assert stranding(Room(a_fleet([a_node(1)], devices_of(1, gpus=0)))) == ()
