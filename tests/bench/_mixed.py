"""What choosing GPUs and NICs as pairs is worth, against choosing GPUs first."""

import statistics
import sys
from collections.abc import Iterator

from tests.bench.figures import Figure
from tests.packing.mixed import Choose, Mixed, gpus_first, gpus_first_near, in_pairs, mixed

SEEDS = range(10)
FEWER_STRANDED, FEWER_REFUSED = 8.0, 20.0
PEER_SOURCE = "this run: GPUs first, on a node where NICs are near then"


def mixed_figures() -> Iterator[Figure]:
    """Give the figures."""
    ours, theirs, careless = map(_runs, (in_pairs, gpus_first_near, gpus_first))
    yield Figure(
        name="packing.pairs_across_numa",
        value=100 * statistics.mean(run.across for run in ours),
        unit="% of pairs",
        target=0.0,
        peer="GPUs first, NICs wherever",
        peer_value=100 * statistics.mean(run.across for run in careless),
        peer_source="this run",
        higher_is_better=False,
    )
    yield _fewer("stranded", ours, theirs, FEWER_STRANDED)
    yield _fewer("refused", ours, theirs, FEWER_REFUSED)


def _runs(choose: Choose) -> list[Mixed]:
    runs = [mixed(choose, seed) for seed in SEEDS]
    shares = ", ".join(
        f"{name} {100 * statistics.mean(column):.2f} %"
        for name, column in zip(Mixed._fields, zip(*runs, strict=True), strict=True)
    )
    print(f"{choose.__name__}: {shares}", file=sys.stderr, flush=True)
    return runs


def _fewer(name: str, ours: list[Mixed], theirs: list[Mixed], target: float) -> Figure:
    mine, other = (statistics.mean(getattr(run, name) for run in runs) for runs in (ours, theirs))
    return Figure(
        name=f"packing.pairs_fewer_{name}",
        value=100 * (1 - mine / other),
        unit="% less",
        target=target,
        peer="GPUs first",
        peer_value=100 * other,
        peer_source=PEER_SOURCE,
    )
