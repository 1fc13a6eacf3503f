"""Device selection equals the plain search: on every mask, and on thousands of random ones.

Every mask is tried with every fifth size, so that each size meets a fifth of the masks; with
SELECTION_STRIDE=1 all sizes meet all masks, which takes a quarter of an hour.
"""

import os
from collections.abc import Iterator
from functools import cache
from itertools import product

import pytest

from gateway.core.devices.fleet import MachineType
from gateway.core.devices.selection import DeviceWish, choose_devices, pods_on
from gateway.core.devices.topology import layout_of
from gateway.core.vocabulary import PairRule
from tests.machines import ALL, mask_of
from tests.oracle.selection import plain_choice
from tests.oracle.selection_table import SelectionTable
from tests.properties.strategies import Dice

RANDOM_PAIRS = 5_000
MOST_IN_TABLE = 16
SEED = 20_261_201
STRIDE = int(os.environ.get("SELECTION_STRIDE", "5"))
# The rule `node` is met by any devices of a node, as `none` is: one of the two is enough here.
RULES = (PairRule.SWITCH, PairRule.NUMA, PairRule.NODE)
Free = tuple[int, int]
# Many machine types differ in names and addresses alone; one of each layout stands for them all.
DISTINCT = {layout_of(machine): name for name, machine in ALL.items()}
TABLED = [
    name for name in DISTINCT.values() if len(ALL[name].gpus) + len(ALL[name].nics) <= MOST_IN_TABLE
]
LARGE = [name for name in DISTINCT.values() if name not in TABLED]


@cache
def table_of(name: str) -> SelectionTable:
    return SelectionTable(ALL[name])


def full(machine: MachineType) -> Free:
    return mask_of(machine.gpus), mask_of(machine.nics)


def every_mask(machine: MachineType) -> Iterator[Free]:
    gpus, nics = full(machine)
    yield from ((mask, nics) for mask in range(gpus + 1))
    # Machines with very many NICs: of the first twelve every mask.
    yield from ((gpus, mask) for mask in range(min(nics + 1, 1 << 12)))


def random_pairs(machine: MachineType, count: int) -> Iterator[tuple[Dice, Free]]:
    """Give dice and free masks; the same ones in every run."""
    dice = Dice(SEED)
    gpus, nics = full(machine)
    for _ in range(count):
        yield dice, (dice.number(0, 2**62) & gpus, dice.number(0, 2**62) & nics)


def assert_sizes(name: str, free: Free, rule: PairRule, *, is_required: bool) -> None:
    """Compare sizes of one free state."""
    sizes = list(product(*(range(mask.bit_count() + 1) for mask in free)))
    for gpus, nics in sizes[sum(free) % STRIDE :: STRIDE]:
        wish = DeviceWish(gpus, nics, rule, is_required)
        expected = table_of(name).choice(free, wish)
        assert choose_devices(ALL[name], *free, wish) == expected, (name, free, wish)


@pytest.mark.parametrize("name", TABLED)
@pytest.mark.parametrize("rule", RULES)
def test_every_mask_gets_the_best_choice_of_many_sizes(name: str, rule: PairRule) -> None:
    for turn, free in enumerate(every_mask(ALL[name])):
        assert_sizes(name, free, rule, is_required=turn % 2 == 0)


@pytest.mark.parametrize("name", TABLED)
def test_random_masks_get_the_best_choice_for_a_random_wish(name: str) -> None:
    for dice, free in random_pairs(ALL[name], RANDOM_PAIRS):
        gpus, nics = (dice.number(0, mask.bit_count()) for mask in free)
        wish = DeviceWish(gpus, nics, dice.pick(list(PairRule)), dice.happens(50))
        expected = table_of(name).choice(free, wish)
        assert choose_devices(ALL[name], *free, wish) == expected, (free, wish)


@pytest.mark.parametrize("name", LARGE)
def test_machines_too_large_for_a_table_equal_the_plain_search(name: str) -> None:
    for dice, free in random_pairs(ALL[name], 150):
        gpus = dice.number(0, min(free[0].bit_count(), 4))
        wish = DeviceWish(gpus, dice.number(0, 3), dice.pick(list(PairRule)), dice.happens(50))
        expected = plain_choice(ALL[name], *free, wish)
        assert choose_devices(ALL[name], *free, wish) == expected, (free, wish)


@pytest.mark.parametrize("name", DISTINCT.values())
def test_choices_that_leave_room_for_siblings_are_the_best_of_those(name: str) -> None:
    for dice, free in random_pairs(ALL[name], 200):
        rule = dice.pick([PairRule.SWITCH, PairRule.NUMA])
        wish = DeviceWish(dice.number(1, 3), dice.number(1, 3), rule, is_required=True)
        for siblings in range(pods_on(ALL[name], *free, wish)):
            asked = wish._replace(siblings=siblings)
            expected = plain_choice(ALL[name], *free, asked)
            assert choose_devices(ALL[name], *free, asked) == expected, (free, asked)
