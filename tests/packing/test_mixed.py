"""GPUs and NICs chosen as pairs, against GPUs first: nearness kept, and less left over."""

import random
from collections.abc import Callable
from functools import cache
from statistics import mean

import pytest

from gateway.core.resources import GPU, RDMA
from tests.packing.mixed import (
    Choose,
    Mixed,
    Run,
    a_pod,
    crossings,
    gpus_first,
    gpus_first_near,
    in_pairs,
    lowest,
    mixed,
    nearest_gpus,
    nearest_nics,
    stranded,
)

SEEDS = range(3)


@cache
def runs(choose: Choose) -> tuple[Mixed, ...]:
    return tuple(mixed(choose, seed) for seed in SEEDS)


def figure(choose: Choose, value: Callable[[Mixed], float]) -> float:
    return mean(map(value, runs(choose)))


def test_no_pair_is_across_numa_nodes_where_that_is_asked() -> None:
    assert all(run.across == 0 for run in runs(in_pairs))
    assert figure(gpus_first, lambda run: run.across) > 0.1


def test_fewer_gpus_are_stranded_than_by_choosing_gpus_first() -> None:
    ours, theirs = (
        figure(choose, lambda run: run.stranded) for choose in (in_pairs, gpus_first_near)
    )
    assert ours < 0.95 * theirs


def test_fewer_pods_are_refused_than_by_choosing_gpus_first() -> None:
    ours, theirs = (
        figure(choose, lambda run: run.refused) for choose in (in_pairs, gpus_first_near)
    )
    assert ours < 0.8 * theirs


def test_free_gpus_without_a_near_free_nic_are_stranded() -> None:
    run = Run(in_pairs, random.Random(0))  # noqa: S311 - an example, not a secret
    assert stranded(run.room) == 0
    for row in range(run.room.gpu_free.size):
        # The NICs of one NUMA node are gone and the GPUs of the other.
        run.room.empty([row])
        state = run.room.state(row)._replace(gpu_free=0x0F, nic_free=0b1100)
        run.room._set(row, run.room.shapes.states.number_of(state))
    assert stranded(run.room) == 2 * run.room.gpu_free.size


@pytest.mark.parametrize(
    ("gpus", "nics", "expected"),
    [(0b1, 0b1, 0), (0b1, 0b100, 1), (0x0F, 0b1111, 2), (0xFF, 0b1111, 0), (0x11, 0b11, 1)],
)
def test_a_nic_is_across_when_no_gpu_is_left_for_it_in_its_numa_node(
    gpus: int, nics: int, expected: int
) -> None:
    assert crossings(gpus, nics) == expected


def test_choosing_gpus_first_takes_the_fullest_numa_node_that_has_enough() -> None:
    assert nearest_gpus(0b1110_0011, 2) == 0b0000_0011
    assert nearest_gpus(0b1110_0011, 3) == 0b1110_0000
    assert nearest_gpus(0b1110_0011, 4) == 0b0110_0011
    assert lowest(0b1010, 1) == 0b10


def test_nics_follow_the_gpus_as_far_as_there_are() -> None:
    assert nearest_nics(0b1111, 1, 0xF0) == 0b0100
    assert nearest_nics(0b1011, 2, 0xF0) == 0b1001
    assert nearest_nics(0b1111, 2, 0x11) == 0b0101


def test_nobody_asks_for_more_nics_than_its_gpus_can_have_near() -> None:
    draw = random.Random(1)  # noqa: S311 - a sample, not a secret
    for _ in range(200):
        wanted = dict(a_pod(draw).per_pod)
        assert wanted.get(RDMA, 0) <= max(wanted[GPU] // 2, min(wanted[GPU], 2))
