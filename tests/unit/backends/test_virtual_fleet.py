"""The virtual fleet: nodes with the topologies of real machines."""

import pytest

from gateway.backends.base import DeviceSeen, NodeSeen
from gateway.backends.machine_catalogue import machine_names
from gateway.backends.virtual_fleet import virtual_fleet
from gateway.core.vocabulary import DeviceKind
from gateway.errors import InvalidInput


def devices(node: NodeSeen, kind: DeviceKind) -> list[DeviceSeen]:
    return [device for device in node.devices if device.kind is kind]


def test_a_description_gives_that_many_nodes_of_each_machine() -> None:
    fleet = virtual_fleet("2xdgx-h100, cpu")

    assert [node.name for node in fleet] == ["dgx-h100-0", "dgx-h100-1", "cpu-0"]
    assert [len(node.devices) for node in fleet] == [16, 16, 0]


def test_parts_of_one_machine_type_add_up_to_distinct_nodes() -> None:
    assert len({node.name for node in virtual_fleet("1xcpu,2xcpu")}) == 3


def test_the_same_description_gives_the_same_fleet() -> None:
    assert virtual_fleet("2xdgx-a100") == virtual_fleet("2xdgx-a100")


def test_every_gpu_of_a_fleet_has_its_own_uuid() -> None:
    gpus = [gpu for node in virtual_fleet("3xdgx-h100,2xp4d") for gpu in node.devices if gpu.uuid]

    assert len({gpu.uuid for gpu in gpus}) == len(gpus) == 40


def test_a_dgx_h100_pairs_each_gpu_with_one_nic_under_its_switch() -> None:
    (node,) = virtual_fleet("dgx-h100")
    gpus, nics = devices(node, DeviceKind.GPU), devices(node, DeviceKind.RDMA)

    assert [gpu.switch for gpu in gpus] == [nic.switch for nic in nics] == list(range(8))
    assert [nic.rail for nic in nics] == list(range(8))
    assert [gpu.numa for gpu in gpus] == [0] * 4 + [1] * 4
    assert (gpus[0].pci_address, nics[0].pci_address) == ("0000:1b:00.0", "0000:18:00.0")
    assert {gpu.nvlink_group for gpu in gpus} == {0}


def test_a_dgx_a100_numbers_its_gpus_otherwise_than_its_numa_nodes() -> None:
    (node,) = virtual_fleet("dgx-a100")

    assert [gpu.numa for gpu in devices(node, DeviceKind.GPU)] == [3, 3, 1, 1, 7, 7, 5, 5]


@pytest.mark.parametrize(("name", "nics"), [("p4d", 4), ("p5", 32), ("nd-h100-v5", 8), ("cpu", 0)])
def test_machines_have_the_nics_their_source_names(name: str, nics: int) -> None:
    (node,) = virtual_fleet(name)

    assert len(devices(node, DeviceKind.RDMA)) == nics


@pytest.mark.parametrize("name", machine_names())
def test_ordinals_are_dense_and_a_nic_on_a_switch_shares_it_with_a_gpu(name: str) -> None:
    (node,) = virtual_fleet(name)
    gpus, nics = devices(node, DeviceKind.GPU), devices(node, DeviceKind.RDMA)

    assert [device.ordinal for device in gpus] == list(range(len(gpus)))
    assert [device.ordinal for device in nics] == list(range(len(nics)))
    assert {nic.switch for nic in nics} - {-1} <= {gpu.switch for gpu in gpus}
    addresses = [device.pci_address for device in node.devices if device.pci_address]
    assert len(addresses) == len(set(addresses))


def test_amounts_are_base_units() -> None:
    (node,) = virtual_fleet("cpu")

    assert dict(node.total) == {"cpu": 64_000, "memory": 256 * 1024**3, "pods": 110}


@pytest.mark.parametrize("text", ["", "2x", "0xcpu", "cpu,", "-1xcpu", "1 x cpu", "2XCPU"])
def test_a_description_of_another_form_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        virtual_fleet(text)

    assert "2xdgx-h100" in caught.value.hint


def test_an_unknown_machine_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InvalidInput) as caught:
        virtual_fleet("2xdgx-h900")

    assert "dgx-h100" in caught.value.allowed


def test_a_fleet_beyond_the_limit_is_refused() -> None:
    with pytest.raises(InvalidInput, match="at most"):
        virtual_fleet("100001xcpu")
