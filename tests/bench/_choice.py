"""What one choice among 5,000 nodes costs, by policy; in CPU time of the one thread."""

import random
import time
from collections.abc import Iterator

from gateway.core.devices.warm import FleetState
from gateway.core.placing.eligibility import Eligibility
from gateway.core.placing.room import Room
from gateway.core.placing.typical import Asked, Typical
from gateway.core.policies.placement import PLACEMENT
from tests.bench._fleets import FLAVOR, idle_fleet
from tests.bench.figures import Figure, median_figure
from tests.builders import a_pod_set

CHOICES, REPETITIONS = 3_000, 5
SIZES = (1, 2, 4, 8)
TARGET_US = 60.0


def choice_figures() -> Iterator[Figure]:
    """Give microseconds a gang of one pod, on a fleet that fills up meanwhile."""
    rows = list(idle_fleet())
    state = FleetState()
    state.apply([node for node, _ in rows], [each for _, devices in rows for each in devices])
    fleet = state.change(is_complete=True).fleet
    eligibility = Eligibility(fleet, (FLAVOR,))
    shapes = [(a_pod_set(gpu=gpus, cpu=4_000 * gpus),) for gpus in SIZES]
    masks = [{"Worker": eligibility.nodes(shape[0], FLAVOR)} for shape in shapes]
    samples: dict[str, list[float]] = {"fragmentation": [], "pack": [], "spread": []}
    for name in [*samples] * REPETITIONS:
        room, draw = Room(fleet), random.Random(1)  # noqa: S311 - gangs, not secrets
        asked = [
            Asked(each[0], mask["Worker"], 1) for each, mask in zip(shapes, masks, strict=True)
        ]
        room.typical = Typical(room, asked)
        drawn = [draw.randrange(len(SIZES)) for _ in range(CHOICES)]
        started = time.process_time()
        for index in drawn:
            assert PLACEMENT[name](room, shapes[index], masks[index])
        samples[name].append((time.process_time() - started) / CHOICES * 1e6)
    for name, values in samples.items():
        figure = f"packing.choice_us_{name}"
        yield median_figure(figure, values, "us", target=TARGET_US, higher_is_better=False)
