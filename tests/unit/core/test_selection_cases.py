"""Device selection on machines that are wired in unusual ways, each case by its name."""

import pytest

from gateway.core.devices.fleet import MachineType
from gateway.core.devices.selection import Choice, DeviceWish, choose_devices, pods_on
from gateway.core.vocabulary import PairRule
from tests.machines import ALL, ODD, mask_of, slots_of
from tests.oracle.selection import plain_choice

SWITCH, NUMA, NODE = PairRule.SWITCH, PairRule.NUMA, PairRule.NODE


def chosen(machine: MachineType, wish: DeviceWish, busy: tuple[int, int] = (0, 0)) -> Choice | None:
    """Give the choice with these devices busy, after comparing it with the plain search."""
    free = mask_of(machine.gpus) & ~busy[0], mask_of(machine.nics) & ~busy[1]
    choice = choose_devices(machine, *free, wish)
    assert choice == plain_choice(machine, *free, wish)
    return choice


def wish(gpus: int, nics: int, rule: PairRule = SWITCH, *, required: bool = True) -> DeviceWish:
    return DeviceWish(gpus, nics, rule, required)


def test_gpu_order_that_is_not_nic_order_goes_by_switch() -> None:
    machine = ODD["GPU order is not NIC order"]
    assert chosen(machine, wish(2, 2)) == Choice(0b11, 0b11000000, is_aligned=True)
    assert chosen(machine, wish(1, 1), (0, 0b10000000)) == Choice(0b10, 0b1000000, is_aligned=True)


def test_two_gpus_on_one_nic_are_taken_together() -> None:
    machine = ODD["two GPUs on one NIC"]
    assert chosen(machine, wish(2, 1)) == Choice(0b11, 0b1, is_aligned=True)
    # A NIC each needs two switches, for no NIC serves two pairs.
    assert chosen(machine, wish(2, 2)) == Choice(0b101, 0b11, is_aligned=True)
    assert chosen(machine, wish(4, 2), (0b1, 0)) == Choice(0b11110000, 0b1100, is_aligned=True)


def test_four_nics_per_gpu_all_come_from_its_switch() -> None:
    machine = ODD["four NICs per GPU"]
    assert chosen(machine, wish(1, 4)) == Choice(0b1, 0b1111, is_aligned=True)
    assert chosen(machine, wish(1, 4), (0, 0b1)) == Choice(0b10, 0b11110000, is_aligned=True)
    assert chosen(machine, wish(1, 5)) is None
    assert pods_on(machine, 0b11, 0b11111111, wish(1, 3)) == 2


def test_without_topology_data_nothing_is_near_and_a_preference_still_places() -> None:
    machine = ODD["no topology data"]
    assert chosen(machine, wish(2, 2)) is None
    assert chosen(machine, wish(2, 2, NUMA)) is None
    assert chosen(machine, wish(2, 2, required=False)) == Choice(0b11, 0b11, is_aligned=False)
    assert chosen(machine, wish(2, 2, NODE)) == Choice(0b11, 0b11, is_aligned=True)


def test_where_only_numa_nodes_are_equal_the_numa_rule_holds() -> None:
    machine = ODD["equal NUMA only"]
    assert chosen(machine, wish(1, 1)) is None
    assert chosen(machine, wish(2, 2, NUMA), (0b1, 0)) == Choice(0b1100, 0b1100, is_aligned=True)
    assert chosen(machine, wish(1, 2, NUMA), (0, 0b1)) == Choice(0b100, 0b1100, is_aligned=True)


def test_a_gpu_of_dead_nvlink_is_taken_alone_and_left_out_of_groups() -> None:
    machine = ODD["degraded NVLink"]
    assert chosen(machine, wish(4, 4, NUMA)) == Choice(0b11110000, 0b11110000, is_aligned=True)
    assert chosen(machine, wish(3, 3)) == Choice(0b1011, 0b1011, is_aligned=True)
    # Where all are needed it serves as well as it can.
    assert chosen(machine, wish(8, 8)) == Choice(0b11111111, 0b11111111, is_aligned=True)


def test_a_pair_without_its_link_is_taken_apart() -> None:
    machine = ODD["one pair without its link"]
    assert chosen(machine, wish(2, 0)) == Choice(0b101, 0, is_aligned=True)
    assert chosen(machine, wish(1, 1)) == Choice(0b1, 0b1, is_aligned=True)


def test_gpus_reached_over_c2c_are_near_by_numa_node_alone() -> None:
    machine = ODD["C2C beside PCIe switches"]
    assert chosen(machine, wish(1, 1)) is None
    assert chosen(machine, wish(1, 1, NUMA), (0, 0b1)) == Choice(0b1, 0b10, is_aligned=True)
    assert pods_on(machine, 0b1111, 0b1111, wish(2, 2, NUMA)) == 2


def test_a_taken_nic_makes_the_search_look_beyond_the_first_gpus() -> None:
    machine = ODD["two GPUs on one NIC"]
    # GPU 0 and the NIC of its switch are gone: three GPUs with two NICs are in the other half.
    assert chosen(machine, wish(3, 2), (0b1, 0b1)) == Choice(0b1110000, 0b1100, is_aligned=True)


@pytest.mark.parametrize("rule", PairRule)
@pytest.mark.parametrize("name", ALL)
def test_each_machine_agrees_with_the_plain_search_on_a_walk_of_masks(
    name: str, rule: PairRule
) -> None:
    machine = ALL[name]
    everything = mask_of(machine.gpus), mask_of(machine.nics)
    for step in range(30):
        # Multiples of an odd number walk through masks of all sizes without a pattern.
        free = everything[0] & ~(step * 37), everything[1] & ~(step * 2_654_435_761 >> 7)
        gpus, nics = min(step % 5, free[0].bit_count()), min(step % 4, free[1].bit_count())
        asked = wish(gpus, nics, rule, required=step % 2 == 0)
        assert choose_devices(machine, *free, asked) == plain_choice(machine, *free, asked)


def test_machines_with_very_many_gpus_are_searched_by_like_gpus() -> None:
    switches = [ordinal // 8 for ordinal in range(32)]
    machine = MachineType(name="large", gpus=slots_of(switches), nics=slots_of([0, 1, 2, 3]))
    assert chosen(machine, wish(8, 1)) == Choice(0xFF, 0b1, is_aligned=True)
    assert chosen(machine, wish(9, 2), (0b1, 0)) == Choice(0xFF02, 0b11, is_aligned=True)
