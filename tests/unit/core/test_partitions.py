"""NVLink partitions: which there are, and how the choice of GPUs keeps to them."""

from dataclasses import replace

import pytest

from gateway.core.devices.fleet import MachineType, Partition
from gateway.core.devices.partitions import costs_of, partitions_of
from gateway.core.devices.selection import Choice, DeviceWish, choose_devices, pods_on
from gateway.core.vocabulary import PairRule, PartitionRule
from tests.machines import ODD, of_catalogue, slots_of
from tests.oracle.selection import plain_choice

H100 = of_catalogue("dgx-h100")
HONOUR, PREFER = PartitionRule.HONOUR, PartitionRule.PREFER
RINGS = replace(
    H100,
    partitions=(
        Partition(2, 0b11, 200),
        Partition(2, 0b1100, 400),
        Partition(2, 0b110000, 400),
        Partition(4, 0b1111, 300),
    ),
)


def wish(
    gpus: int, nics: int = 0, rule: PartitionRule = HONOUR, *, near: bool = True
) -> DeviceWish:
    return DeviceWish(gpus, nics, PairRule.SWITCH, near, partition=rule)


def chosen(
    machine: MachineType, asked: DeviceWish, busy: int = 0, nics: int = 0xFF
) -> Choice | None:
    """Give the choice, after comparing it with the plain search."""
    free = (1 << len(machine.gpus)) - 1 & ~busy
    choice = choose_devices(machine, free, nics, asked)
    assert choice == plain_choice(machine, free, nics, asked)
    return choice


def gpus_of(choice: Choice | None) -> int:
    assert choice is not None
    return choice.gpu_mask


def test_the_usual_partitions_are_aligned_and_inside_one_nvlink_group() -> None:
    machine = MachineType(name="five", gpus=slots_of([0] * 6, nvlinks=[0, 0, 0, 0, 0, -1]))
    assert [each[:2] for each in partitions_of(machine)] == [
        (1, 0b1),
        (1, 0b10),
        (1, 0b100),
        (1, 0b1000),
        (1, 0b10000),
        (2, 0b11),
        (2, 0b1100),
        (4, 0b1111),
        (1, 0b100000),
    ]
    assert partitions_of(MachineType(name="cpu")) == ()


def test_gpus_whose_own_link_is_down_are_in_no_partition_together() -> None:
    machine = MachineType(name="hurt", gpus=slots_of([0] * 4, nvlinks=[0] * 4), links=((1, 2),))
    assert [each.gpus for each in partitions_of(machine)] == [1, 2, 4, 8, 0b11, 0b1100]
    assert pods_on(machine, 0b1111, 0, wish(4)) == 0


def test_a_machine_type_with_a_table_of_its_own_has_no_others() -> None:
    assert partitions_of(RINGS) == RINGS.partitions
    assert costs_of(RINGS) == {0b11: 200, 0b1100: 0, 0b110000: 0, 0b1111: 0}


@pytest.mark.parametrize(("size", "mask"), [(1, 0b1), (2, 0b11), (4, 0b1111), (8, 0xFF)])
def test_partitions_of_the_usual_sizes_are_honoured(size: int, mask: int) -> None:
    assert chosen(H100, wish(size, size)) == Choice(mask, mask, is_aligned=True)


@pytest.mark.parametrize("size", [3, 5, 6, 7])
def test_a_size_that_no_partition_has_is_refused_when_honoured(size: int) -> None:
    assert chosen(H100, wish(size)) is None
    assert pods_on(H100, 0xFF, 0xFF, wish(size)) == 0
    assert gpus_of(chosen(H100, wish(size, rule=PREFER))) == (1 << size) - 1


def test_a_pair_that_is_no_partition_is_taken_only_where_none_is_free() -> None:
    assert chosen(H100, wish(2), busy=0b10101001) is None
    assert gpus_of(chosen(H100, wish(2, rule=PREFER), busy=0b00101001)) == 0b11000000
    assert gpus_of(chosen(H100, wish(2, rule=PREFER), busy=0b01101001)) == 0b110


def test_the_faster_ring_comes_first() -> None:
    assert gpus_of(chosen(RINGS, wish(2))) == 0b1100
    assert gpus_of(chosen(RINGS, wish(2), busy=0b110100)) == 0b11


def test_a_required_pair_rule_holds_inside_partitions() -> None:
    assert chosen(H100, wish(2, 2), nics=0b11110110) == Choice(0b110000, 0b110000, is_aligned=True)
    assert chosen(H100, wish(4, 4), nics=0b11110110) == Choice(0xF0, 0xF0, is_aligned=True)
    assert chosen(H100, wish(8, 8), nics=0b11110110) is None


def test_pods_that_find_partitions_are_counted_exactly() -> None:
    assert pods_on(H100, 0xFF, 0xFF, wish(2, 2)) == 4
    assert pods_on(H100, 0b01111110, 0xFF, wish(2, 2)) == 2
    assert pods_on(H100, 0b01111110, 0b11110011, wish(2, 2)) == 1
    assert pods_on(H100, 0b01111110, 0b11110011, wish(2, 2, near=False)) == 2
    assert pods_on(H100, 0, 0, wish(2)) == 0
    assert pods_on(H100, 0xFF, 0xFF, wish(0, 4)) == 2


def test_partitions_that_overlap_are_counted_once() -> None:
    machine = replace(
        H100, partitions=(Partition(2, 0b110), Partition(2, 0b11), Partition(2, 0b1100))
    )
    assert pods_on(machine, 0b1111, 0, wish(2)) == 2
    first = choose_devices(machine, 0b1111, 0, wish(2)._replace(siblings=1))
    assert gpus_of(first) in {0b11, 0b1100}
    assert choose_devices(machine, 0b1111, 0, wish(2)._replace(siblings=2)) is None


def test_who_asks_for_no_gpu_is_not_held_to_partitions() -> None:
    assert chosen(H100, wish(0, 2)) == Choice(0, 0b11, is_aligned=True)


@pytest.mark.parametrize("rule", [HONOUR, PREFER])
@pytest.mark.parametrize(
    "machine", [H100, RINGS, ODD["degraded NVLink"]], ids=lambda each: each.name
)
def test_choices_in_partitions_equal_the_plain_search(
    machine: MachineType, rule: PartitionRule
) -> None:
    for step in range(40):
        asked = wish(1 + step % 4, step % 3, rule, near=step % 2 == 0)
        asked = asked._replace(siblings=step % 4 // 2)
        free = 0xFF & ~(step * 37), 0xFF & ~(step * 11 >> 2)
        assert choose_devices(machine, *free, asked) == plain_choice(machine, *free, asked)


def test_machines_of_many_gpus_keep_to_partitions_too() -> None:
    machine = MachineType(name="large", gpus=slots_of([0] * 16, nvlinks=[0] * 16))
    assert gpus_of(chosen(machine, wish(8), busy=0b1)) == 0xFF00
    assert gpus_of(chosen(machine, wish(2, rule=PREFER), busy=0b1)) == 0b1100
    assert chosen(machine, wish(0)) == Choice(0, 0, is_aligned=True)
