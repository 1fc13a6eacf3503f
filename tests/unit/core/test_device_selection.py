"""Which GPUs and NICs a pod gets on one node."""

import pytest

from gateway.core.devices.fleet import DeviceSlot, MachineType
from gateway.core.devices.selection import MANY_PODS, DeviceWish, choose_devices, pods_on
from gateway.core.devices.topology import layout_of, pairing
from gateway.core.vocabulary import PairRule


def slots(switches: list[int], per_numa: int = 2, nvlink: int = -1) -> tuple[DeviceSlot, ...]:
    return tuple(
        DeviceSlot(ordinal=i, switch=s, numa=s // per_numa if s >= 0 else -1, nvlink_group=nvlink)
        for i, s in enumerate(switches)
    )


EIGHT = MachineType(
    name="four switches of two",
    gpus=slots([0, 0, 1, 1, 2, 2, 3, 3]),
    nics=slots([0, 0, 1, 1, 2, 2, 3, 3]),
)


def wish(gpus: int, nics: int, rule: PairRule = PairRule.SWITCH, siblings: int = 0) -> DeviceWish:
    return DeviceWish(gpus, nics, rule, is_required=True, siblings=siblings)


def preferred(gpus: int, nics: int, rule: PairRule = PairRule.SWITCH) -> DeviceWish:
    return DeviceWish(gpus, nics, rule, is_required=False)


def masks(machine: MachineType, gpus: int, nics: int, wanted: DeviceWish) -> tuple[int, int] | None:
    choice = choose_devices(machine, gpus, nics, wanted)
    return (choice.gpu_mask, choice.nic_mask) if choice else None


def test_each_nic_is_under_the_switch_of_its_own_gpu() -> None:
    assert masks(EIGHT, 0b11111111, 0b11110000, wish(4, 4)) == (0b11110000, 0b11110000)


def test_a_required_rule_refuses_what_only_a_preferred_one_accepts() -> None:
    assert choose_devices(EIGHT, 0b0011, 0b1100, wish(2, 2)) is None
    choice = choose_devices(EIGHT, 0b0011, 0b1100, preferred(2, 2))
    assert choice is not None
    assert not choice.is_aligned


@pytest.mark.parametrize("rule", [PairRule.NUMA, PairRule.NODE, PairRule.NONE])
def test_a_looser_rule_accepts_neighbouring_switches(rule: PairRule) -> None:
    assert masks(EIGHT, 0b0011, 0b1100, wish(2, 2, rule)) == (0b0011, 0b1100)


def test_the_numa_rule_ends_at_the_numa_node() -> None:
    assert choose_devices(EIGHT, 0b0011, 0b110000, wish(2, 2, PairRule.NUMA)) is None
    assert masks(EIGHT, 0b0011, 0b110000, wish(2, 2, PairRule.NODE)) == (0b0011, 0b110000)


def test_too_few_free_devices_are_no_choice() -> None:
    assert choose_devices(EIGHT, 0b0111, 0b1111, wish(4, 0)) is None
    assert choose_devices(EIGHT, 0b1111, 0b0001, wish(1, 2, PairRule.NONE)) is None


def test_fewer_nics_than_gpus_each_need_a_gpu_of_their_own() -> None:
    assert masks(EIGHT, 0b1111, 0b1100, wish(4, 2)) == (0b1111, 0b1100)
    assert choose_devices(EIGHT, 0b0101, 0b0011, wish(2, 2)) is None


def test_more_nics_than_gpus_are_spread_evenly() -> None:
    assert masks(EIGHT, 0b0101, 0b1111, wish(2, 4)) == (0b0101, 0b1111)
    # Three NICs of one switch cannot all be near one GPU when each GPU carries two.
    crowded = MachineType(name="crowded", gpus=slots([0, 1]), nics=slots([0, 0, 0, 1]))
    assert choose_devices(crowded, 0b11, 0b1111, wish(2, 4)) is None


def test_one_gpu_carries_one_nic_more_where_they_do_not_divide() -> None:
    machine = MachineType(name="uneven", gpus=slots([0, 1]), nics=slots([0, 0, 1]))
    assert masks(machine, 0b11, 0b111, wish(2, 3)) == (0b11, 0b111)


def test_linked_gpus_are_chosen_before_distant_ones() -> None:
    linked = (0, 1, 0, 1)
    machine = MachineType(
        name="two islands",
        gpus=tuple(
            DeviceSlot(ordinal=i, switch=i, numa=0, nvlink_group=g) for i, g in enumerate(linked)
        ),
    )
    assert masks(machine, 0b1111, 0, wish(2, 0)) == (0b0101, 0)


def test_whole_switches_stay_whole() -> None:
    assert masks(EIGHT, 0b11111101, 0b11111111, wish(1, 1)) == (0b1, 0b1)
    assert masks(EIGHT, 0b01001111, 0b11111111, wish(1, 1)) == (0b1000000, 0b1000000)


def test_equal_choices_fall_to_the_lowest_ordinals() -> None:
    assert masks(EIGHT, 0b11111111, 0b11111111, wish(2, 2)) == (0b11, 0b11)


def test_a_choice_leaves_enough_for_its_siblings() -> None:
    machine = MachineType(name="lopsided", gpus=slots([0, 0, 1, 1]), nics=slots([0, 0]))
    assert pods_on(machine, 0b1111, 0b11, wish(2, 1)) == 2
    alone = masks(machine, 0b1111, 0b11, wish(2, 1))
    with_sibling = masks(machine, 0b1111, 0b11, wish(2, 1, siblings=1))
    assert alone == (0b0011, 0b01)
    assert with_sibling == (0b0101, 0b01)


def test_devices_of_unknown_place_are_near_nothing() -> None:
    machine = MachineType(name="bare", gpus=slots([-1, -1]), nics=slots([-1, -1]))
    assert choose_devices(machine, 0b11, 0b11, wish(1, 1)) is None
    assert choose_devices(machine, 0b11, 0b11, wish(1, 1, PairRule.NUMA)) is None
    assert masks(machine, 0b11, 0b11, wish(1, 1, PairRule.NODE)) == (0b1, 0b1)


def test_a_switch_of_unknown_numa_node_is_near_itself_only() -> None:
    gpus = (DeviceSlot(ordinal=0, switch=0), DeviceSlot(ordinal=1, switch=1))
    machine = MachineType(name="no numa", gpus=gpus, nics=gpus)
    assert masks(machine, 0b01, 0b11, wish(1, 1, PairRule.NUMA)) == (0b01, 0b01)
    assert choose_devices(machine, 0b01, 0b10, wish(1, 1, PairRule.NUMA)) is None


@pytest.mark.parametrize(
    ("wanted", "pods"),
    [
        (wish(1, 1), 8),
        (wish(2, 2), 4),
        (wish(3, 3), 2),
        (wish(1, 2), 4),
        (wish(2, 3), 2),
        (wish(0, 2), 4),
        (wish(4, 0), 2),
        (wish(4, 0, PairRule.NODE), 2),
        (wish(2, 4, PairRule.NODE), 2),
        (preferred(1, 8), 1),
        (wish(1, 8), 0),
        (wish(9, 1), 0),
        (wish(0, 0), MANY_PODS),
    ],
)
def test_the_pods_that_fit_a_node_are_counted_exactly(wanted: DeviceWish, pods: int) -> None:
    assert pods_on(EIGHT, 0b11111111, 0b11111111, wanted) == pods


def test_distances_add_up_over_the_best_pairs() -> None:
    layout = layout_of(EIGHT)
    assert pairing(layout, 0b1, 0b1, PairRule.SWITCH) == (False, 0)
    assert pairing(layout, 0b1, 0b100, PairRule.SWITCH) == (True, 1)
    assert pairing(layout, 0b1, 0b10000, PairRule.NUMA) == (True, 2)
    assert pairing(layout, 0b1, 0, PairRule.SWITCH) == (False, 0)
