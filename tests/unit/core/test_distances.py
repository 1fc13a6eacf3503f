"""The distance of two devices in NCCL's words."""

import pytest

from gateway.core.devices.distances import (
    Distance,
    distance_to_nic,
    gpu_links,
    link_of_gpus,
    nic_distances,
)
from gateway.core.devices.fleet import DeviceSlot, MachineType

GPU = DeviceSlot(ordinal=0, switch=1, switch_path=(1, 4), root=0, numa=0, nvlink_group=0)
FAR = DeviceSlot(ordinal=1, switch=2, root=1, numa=1, nvlink_group=0)


@pytest.mark.parametrize(
    ("nic", "told"),
    [
        (DeviceSlot(ordinal=0, switch=4, switch_path=(1, 4)), Distance.PIX),
        (DeviceSlot(ordinal=0, switch=1, switch_path=(1, 5)), Distance.PXB),
        (DeviceSlot(ordinal=0, switch=1), Distance.PXB),
        (DeviceSlot(ordinal=0, switch=6, switch_path=(1, 6)), Distance.PXB),
        (DeviceSlot(ordinal=0, switch=3, switch_path=(3,), root=0, numa=0), Distance.PHB),
        (DeviceSlot(ordinal=0, switch=3, root=2, numa=0), Distance.NODE),
        (DeviceSlot(ordinal=0, switch=3, root=2, numa=1), Distance.SYS),
        (DeviceSlot(ordinal=0, switch=3, root=2), Distance.UNKNOWN),
        (DeviceSlot(ordinal=0), Distance.UNKNOWN),
    ],
)
def test_a_pair_is_as_far_as_the_first_thing_that_it_shares(
    nic: DeviceSlot, told: Distance
) -> None:
    machine = MachineType(name="m", gpus=(GPU,), nics=(nic,))

    assert distance_to_nic(machine, GPU, nic) is told


def test_without_a_path_an_equal_switch_is_the_only_one() -> None:
    nic = DeviceSlot(ordinal=0, switch=2)

    assert distance_to_nic(MachineType(name="m"), FAR, nic) is Distance.PIX


def test_over_c2c_only_the_numa_node_counts() -> None:
    nic = DeviceSlot(ordinal=0, switch=1, switch_path=(1, 4), root=0, numa=0)
    machine = MachineType(name="m", is_c2c=True)

    assert distance_to_nic(machine, GPU, nic) is Distance.NODE
    assert distance_to_nic(machine, FAR, nic) is Distance.SYS


def test_gpus_of_one_group_are_told_by_their_links() -> None:
    counted = MachineType(name="m", gpus=(GPU, FAR), nvlinks=18)
    uncounted = MachineType(name="m", gpus=(GPU, FAR))
    broken = MachineType(name="m", gpus=(GPU, FAR), nvlinks=18, links=((0, 1),))

    assert link_of_gpus(counted, FAR, GPU) == "NV18"
    assert link_of_gpus(uncounted, GPU, FAR) == "NV"
    assert link_of_gpus(broken, GPU, FAR) == link_of_gpus(broken, FAR, GPU) == "SYS"


def test_matrices_have_a_row_for_each_gpu() -> None:
    nic = DeviceSlot(ordinal=0, switch=2, numa=1)
    machine = MachineType(name="m", gpus=(GPU, FAR), nics=(nic,), nvlinks=4)

    assert gpu_links(machine) == (("X", "NV4"), ("NV4", "X"))
    assert nic_distances(machine) == (("SYS",), ("PIX",))
    assert nic_distances(MachineType(name="bare")) == ()
