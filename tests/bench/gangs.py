"""Placing gangs on 5,000 nodes of 8 GPUs and 8 NICs: how fast it fills, and what full costs.

Measured is the placement alone: no quota, no order, no database. Filling starts from an idle fleet
of which nothing is known and ends when no gang fits. Figures are in CPU time, for one thread is all
that a decision uses and other programs may run beside it.
"""

import random
import time
from collections.abc import Iterator
from dataclasses import replace

from gateway.core.devices.warm import FleetState
from gateway.core.placing.eligibility import Eligibility
from gateway.core.placing.room import Room
from gateway.core.placing.screening import Asked, screen
from gateway.core.policies.placement import PodSets, pack
from tests.bench._fleets import (
    FLAVOR,
    RACK,
    Row,
    distinct_gangs,
    filled,
    idle_fleet,
    released,
)
from tests.bench.figures import Figure, median_figure
from tests.builders import a_pod_set

REPETITIONS = 5
FILL_TARGET, COLD_TARGET, CHURN_TARGET = 7_000, 0.25, 0.1
SHAPES = 2_000
CHANGED = 0.01
"""Share of the nodes that change from one cycle to the next."""
KUEUE = "earlier run, 2 vCPU Xeon: Kueue in process, topology, decisions only, no devices"
KUEUE_FULL = "earlier run, 2 vCPU Xeon: Kueue in process, one cycle over 16 heads, not 2,000"


def run() -> Iterator[Figure]:
    """Give the figures."""
    rows = list(idle_fleet())
    workers = replace(a_pod_set(count=8, gpu=8, rdma=8), level=RACK)
    master = replace(workers, name="Master", count=1)
    yield _fill_figure("gangs.fill_8x8_rack", rows, (workers,))
    yield _fill_figure("gangs.fill_8x8_rack_master", rows, (master, replace(workers, count=7)))
    yield from _full_figures(rows)


def _fill_figure(name: str, rows: list[Row], gang: PodSets) -> Figure:
    state = _state_of(rows)
    fleet = state.change(is_complete=True).fleet
    samples = []
    for _ in range(REPETITIONS):
        started = time.process_time()
        room, eligibility = Room(fleet), Eligibility(fleet, (FLAVOR,))
        placed = 0
        while pack(room, gang, {each.name: eligibility.nodes(each, FLAVOR) for each in gang}):
            placed += 1
        samples.append(placed / (time.process_time() - started))
    return median_figure(
        name,
        samples,
        "gangs/s",
        target=FILL_TARGET,
        peer="Kueue",
        peer_value=337,
        peer_source=KUEUE,
    )


def _full_figures(rows: list[Row]) -> Iterator[Figure]:
    """Give the time to know of 2,000 shapes that none fits, and that after 1 % of nodes changed."""
    draw = random.Random(3)  # noqa: S311 - a fleet, not a secret
    full, gangs = [filled(row, draw) for row in rows], distinct_gangs(SHAPES)
    state = _state_of(full)
    fleet = state.change(is_complete=True).fleet
    cold, churn = [], []
    for _ in range(REPETITIONS):
        started = time.process_time()
        room, eligibility = Room(fleet), Eligibility(fleet, (FLAVOR,))
        assert _fitting(room, eligibility, gangs) == 0
        cold.append(time.process_time() - started)
    for repetition in range(2 * REPETITIONS):
        changed = [row for row in full if draw.random() < CHANGED]
        # Room appears and goes again in turns.
        later = [(filled if repetition % 2 else released)(row, draw) for row in changed]
        started = time.process_time()
        _apply(state, later)
        fleet, numbers = state.change(is_complete=True)
        assert numbers is not None
        room.sync(fleet, numbers)
        eligibility.sync(fleet, numbers)
        assert _fitting(room, eligibility, gangs) > 0
        churn.append(time.process_time() - started)
    yield _full_figure("gangs.nothing_fits_seconds", cold, COLD_TARGET)
    yield _full_figure("gangs.churn_cycle_seconds", churn, CHURN_TARGET)


def _full_figure(name: str, samples: list[float], target: float) -> Figure:
    return median_figure(
        name,
        samples,
        "s",
        target=target,
        higher_is_better=False,
        peer="Kueue",
        peer_value=0.046,
        peer_source=KUEUE_FULL,
    )


def _state_of(rows: list[Row]) -> FleetState:
    state = FleetState()
    _apply(state, rows)
    return state


def _apply(state: FleetState, rows: list[Row]) -> None:
    state.apply([node for node, _ in rows], [each for _, devices in rows for each in devices])


def _fitting(room: Room, eligibility: Eligibility, gangs: list[Asked]) -> int:
    """Place one gang after the other until none fits, as a cycle does, and take it all back."""
    placed = 0
    for index in screen(room, eligibility, gangs).nonzero()[0].tolist():
        pod_sets, flavors = gangs[index]
        nodes = {each.name: eligibility.nodes(each, flavors[each.name]) for each in pod_sets}
        placed += pack(room, pod_sets, nodes) is not None
    room.back_to(0)
    return placed
