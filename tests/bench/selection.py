"""What the best set of devices for one pod costs: asked again, asked first, and lists made.

Every machine type of the catalogue in turn, with free masks drawn by a fixed seed. Excluded: which
node it is, other resources, and the first import. CPU time, so that neighbours on the
machine count less.
"""

import time
from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np

from gateway.core.devices.fleet import MachineType
from gateway.core.devices.selection import DeviceWish, choose_devices
from gateway.core.devices.subset_lists import Model
from gateway.core.vocabulary import PairRule
from tests.bench.figures import Figure, median_figure
from tests.machines import catalogue_types, mask_of

REPETITIONS = 5
STATES = 40
"""Free states for each machine type and wish."""
ROUNDS = 20
WISHES = tuple(
    DeviceWish(gpus, gpus, rule, is_required=True)
    for gpus, rule in product((1, 2, 4, 8), (PairRule.SWITCH, PairRule.NUMA, PairRule.NONE))
)
MICROSECONDS = 1e6
Question = tuple[MachineType, int, int, DeviceWish]


def run() -> Iterator[Figure]:
    """Give the figures."""
    machines = catalogue_types()
    cold, warm = [], []
    for turn in range(REPETITIONS):
        asked = questions(machines, seed=turn)
        cold.append(MICROSECONDS * seconds_each(asked))
        warm.append(MICROSECONDS * seconds_each(asked * ROUNDS))
    lists = [lists_seconds(machines) for _ in range(REPETITIONS)]
    lower = {"higher_is_better": False}
    yield median_figure("placement.warm_us", warm, "us", target=20, **lower)
    yield median_figure("placement.cold_us", cold, "us", **lower)
    yield median_figure("placement.lists_seconds", lists, "s", target=2, **lower)


def questions(machines: Sequence[MachineType], seed: int) -> list[Question]:
    """Give what is asked, each question once and none that another seed asks often."""
    rng = np.random.default_rng(seed)
    found: dict[Question, None] = {}
    for machine, wish in product(machines, WISHES):
        # At least as many free as wanted, or the answer would cost nothing.
        gpus, nics = _masks(rng, machine.gpus, wish.gpus), _masks(rng, machine.nics, wish.nics)
        found |= {(machine, *each, wish): None for each in zip(gpus, nics, strict=False)}
    return list(found)


def _masks(rng: np.random.Generator, slots: Sequence[object], least: int) -> list[int]:
    # 62 devices at most have a bit, so whole numbers of 63 bits hold any mask.
    every = (1 << len(slots)) - 1
    drawn = [int(rng.integers(2**63 - 1)) & every for _ in range(STATES)]
    return [mask for mask in (every, *drawn) if mask.bit_count() >= least]


def seconds_each(asked: Sequence[Question]) -> float:
    """Give the mean CPU seconds of one answer."""
    started = time.process_time()
    for question in asked:
        choose_devices(*question)
    return (time.process_time() - started) / len(asked)


def lists_seconds(machines: Sequence[MachineType]) -> float:
    """Give the CPU seconds in which the lists of all machine types are made."""
    started = time.process_time()
    sizes = [len(subsets) for machine in machines for subsets in Model(machine).lists]
    seconds = time.process_time() - started
    assert sum(sizes) >= sum(2 ** mask_of(machine.gpus).bit_count() for machine in machines)
    return seconds
