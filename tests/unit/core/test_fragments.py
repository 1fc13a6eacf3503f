"""How much of what is free typical pods cannot use."""

import random
from itertools import product

import numpy as np
import pytest

from gateway.core.devices.fleet import Int64
from gateway.core.placing.fragments import QUANTUM, WHOLE_GPU, Mix, Rooms, TypicalPod

ONE = TypicalPod(weight=1, gpus=1, units=WHOLE_GPU, need=(4,))
HALF = TypicalPod(weight=1, gpus=1, units=500, need=(2,))
FOUR = TypicalPod(weight=1, gpus=4, units=WHOLE_GPU, need=(8,))
NO_GPU = TypicalPod(weight=9, gpus=0, units=0, need=(1,))


def rooms(*units: tuple[int, ...], free: int = 100, kind: int = 0) -> Rooms:
    """Give rooms with these units of each GPU, all with as much else."""
    return Rooms(
        np.full(len(units), kind, dtype=np.int64),
        np.array(units, dtype=np.int64),
        np.full((len(units), 1), free, dtype=np.int64),
    )


def steps(mix: Mix, before: Int64, after: Int64) -> list[int]:
    found: list[int] = mix.losses(before, after).tolist()
    return found


def test_a_pod_that_fits_strands_only_slivers_smaller_than_what_it_asks_for() -> None:
    assert Mix([ONE]).stranded(rooms((1000, 700, 0), (1000, 1000, 1000))).tolist() == [700, 0]
    assert Mix([HALF]).stranded(rooms((1000, 700, 300, 499))).tolist() == [799]


def test_a_pod_that_does_not_fit_can_use_nothing() -> None:
    assert Mix([FOUR]).stranded(rooms((1000, 1000, 1000, 900))).tolist() == [3900]
    assert Mix([FOUR]).stranded(rooms((1000,) * 4)).tolist() == [0]
    assert Mix([ONE]).stranded(rooms((1000, 1000), free=3)).tolist() == [2000]


def test_pods_count_by_how_many_there_are() -> None:
    mix = Mix([ONE._replace(weight=3), FOUR])
    assert mix.stranded(rooms((1000, 1000))).tolist() == [2000]
    assert Mix([ONE, FOUR._replace(weight=3)]).stranded(rooms((1000, 1000))).tolist() == [6000]


def test_a_kind_of_node_that_a_pod_may_not_use_is_lost_to_it() -> None:
    picky = ONE._replace(kinds=frozenset({1}))
    mix = Mix([picky, ONE], kinds=2)
    assert mix.stranded(rooms((1000,), kind=0)).tolist() == [1000]
    assert mix.stranded(rooms((1000,), kind=1)).tolist() == [0]


def test_pods_without_gpus_say_nothing_about_gpus() -> None:
    assert not Mix([NO_GPU, ONE._replace(weight=0)])
    assert Mix([NO_GPU, ONE]).pods == (ONE,)


def test_losses_are_told_apart_by_steps_and_gains_are_rounded_down() -> None:
    mix = Mix([ONE._replace(weight=2), HALF])
    before = np.zeros(4, dtype=np.int64)
    one_step = 3 * QUANTUM
    after = np.array([1, one_step, -1, -one_step], dtype=np.int64)
    assert steps(mix, before, after) == [1, 1, 0, -1]


def naive(pod: TypicalPod, kind: int, units: tuple[int, ...], free: tuple[int, ...]) -> int:
    """Say it as the definition does, for one pod and one room."""
    usable = [each for each in units if each >= pod.units]
    fits = len(usable) >= pod.gpus and all(
        have >= want for have, want in zip(free, pod.need, strict=True)
    )
    if pod.kinds is not None and kind not in pod.kinds:
        fits = False
    return sum(units) - (sum(usable) if fits else 0)


def a_pod(draw: random.Random) -> TypicalPod:
    gpus = draw.choice([1, 1, 2, 4])
    units = draw.choice([250, 500, WHOLE_GPU]) if gpus == 1 else WHOLE_GPU
    kinds = draw.choice([None, frozenset({0}), frozenset({0, 2})])
    return TypicalPod(draw.randint(1, 5), gpus, units, (draw.randint(0, 9), 3), kinds)


@pytest.mark.parametrize("seed", range(20))
def test_columns_say_what_the_definition_says(seed: int) -> None:
    draw = random.Random(seed)  # noqa: S311 - an example, not a secret
    pods = [a_pod(draw) for _ in range(6)]
    listed = [
        (kind, tuple(draw.choice([0, 250, 600, 1000]) for _ in range(4)), (cpu, memory))
        for kind, cpu, memory in product(range(3), (1, 5, 9), (2, 3))
    ]
    columns = Rooms(*(np.array(column, dtype=np.int64) for column in zip(*listed, strict=True)))
    expected = [sum(pod.weight * naive(pod, *each) for pod in pods) for each in listed]
    assert Mix(pods, kinds=3).stranded(columns).tolist() == expected
