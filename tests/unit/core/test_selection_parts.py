"""The parts that device selection is made of: nests, keys and subset lists."""

from dataclasses import replace

from gateway.core.devices.fleet import MachineType
from gateway.core.devices.keys import gpu_key, order_of, scale_of
from gateway.core.devices.masks import bits_of, lowest_of
from gateway.core.devices.nests import nests_of
from gateway.core.devices.selection import KNOWN_MACHINES, model_of
from gateway.core.devices.subset_lists import Model
from gateway.core.devices.topology import layout_of
from gateway.core.vocabulary import PartitionRule
from tests.machines import ODD, of_catalogue, slots_of

A100 = of_catalogue("dgx-a100")


def test_every_device_is_in_exactly_one_leaf() -> None:
    machine = MachineType(
        name="mixed", gpus=slots_of([0, 1, -1, -1], [0, 0, 0, -1]), nics=slots_of([0, -1], [0, -1])
    )
    nests = nests_of(layout_of(machine), 0b1111, 0b11)
    leaves = [(nest.is_numa, tuple(leaf)) for nest in nests for leaf in nest.leaves]
    assert leaves == [
        (True, (0b1, 0b1, True)),
        (True, (0b10, 0, True)),
        (True, (0b100, 0, False)),
        (False, (0b1000, 0b10, False)),
    ]


def test_earlier_devices_have_the_higher_order() -> None:
    in_device_order = [0b0011, 0b0101, 0b1001, 0b0110, 0b1010, 0b1100]
    assert sorted(in_device_order, key=order_of, reverse=True) == in_device_order


def test_links_outweigh_device_order() -> None:
    scale = scale_of(layout_of(A100))
    assert gpu_key(scale, 0b11000000, 0) < gpu_key(scale, 0b11, 1)
    assert gpu_key(scale, 0b11, 1) < gpu_key(scale, 0b11000000, 1)


def test_one_large_group_left_outweighs_any_number_of_smaller_ones() -> None:
    scale = scale_of(layout_of(A100))
    assert scale.numa[2][2] > 4 * scale.numa[2][1]
    assert scale.numa[0][0] > 4 * scale.switch[2][2]
    assert scale.near > 4 * scale.numa[2][2]


def test_lists_hold_every_subset_once_and_the_best_linked_first() -> None:
    model = Model(ODD["degraded NVLink"])
    assert [len(subsets) for subsets in model.lists] == [1, 8, 28, 56, 70, 56, 28, 8, 1]
    links = [subset.links for subset in model.lists[4]]
    assert links == sorted(links)
    assert not model.lists[4][0].mask & 0b100


def test_only_subsets_of_what_is_free_are_looked_at() -> None:
    model = Model(A100)
    masks = [subset.mask for subset in model.within(0b10110, 2, PartitionRule.NONE)]
    assert masks == [0b110, 0b10010, 0b10100]
    assert model.within(0b1, 2, PartitionRule.NONE) == []


def test_subsets_know_how_many_of_them_are_where() -> None:
    (subset,) = Model(ODD["four NICs per GPU"]).within(0b10, 1, PartitionRule.NONE)
    assert subset.counts == ((0,), (1,))


def test_the_lowest_devices_of_a_mask_come_one_by_one() -> None:
    assert bits_of(0b10110) == [0b10, 0b100, 0b10000]
    assert lowest_of(0b10110) == (0, 0b10, 0b110, 0b10110)


def test_equal_machine_types_share_what_is_known_of_them() -> None:
    model = model_of(A100)
    # More objects than are recognised by identity: then the first is recognised by value.
    copies = [replace(A100) for _ in range(KNOWN_MACHINES + 1)]
    assert {model_of(each) for each in (*copies, A100)} == {model}
