"""How full real fleets get: openb by the gradient, by best fit and at random; Lingjun by gangs.

Shares are of the 6,212 GPUs, means of ten seeds with their standard error. "Random" is about nodes:
on the one drawn, a share still takes the fullest GPU that has as much left. Published results are
from the artifact of "Beware of Fragmentation" (USENIX ATC 2023). Time is CPU time of one thread.
"""

import statistics
import sys
from collections.abc import Iterator

from tests.bench._choice import choice_figures
from tests.bench._lingjun import lingjun_figures
from tests.bench._mixed import mixed_figures
from tests.bench.figures import Figure, median_figure
from tests.packing.openb import Filling

SEEDS = range(10)
TARGETS = {"default": 95.2, "gpuspec33": 94.3, "multigpu50": 97.0}
PUBLISHED = {"default": 95.4, "gpuspec33": 94.5, "multigpu50": 97.1}
LEAD = 1.2
SECONDS = 3.0
SOURCE = "artifact of USENIX ATC 2023, mean of ten seeds"


def run() -> Iterator[Figure]:
    """Give the figures."""
    seconds: list[float] = []
    for trace in TARGETS:
        shares = {policy: _shares(trace, policy, seconds) for policy in POLICIES}
        yield from _trace_figures(trace, shares)
    yield median_figure(
        "packing.seconds_per_pass", seconds, "s", target=SECONDS, higher_is_better=False
    )
    yield from lingjun_figures()
    yield from mixed_figures()
    yield from choice_figures()


POLICIES = ("fragmentation", "best_fit", "random")


def _shares(trace: str, policy: str, seconds: list[float]) -> list[float]:
    """Fill once a seed; the time of the policy that is judged goes to the list."""
    passes = [Filling(trace, policy, seed).run() for seed in SEEDS]
    if policy == "fragmentation":
        seconds += [each.seconds for each in passes]
    shares = [100 * each.share for each in passes]
    error = statistics.stdev(shares) / len(shares) ** 0.5
    text = f"{trace} {policy}: {statistics.mean(shares):.2f} % +- {error:.2f}"
    print(text, file=sys.stderr, flush=True)
    return shares


def _trace_figures(trace: str, shares: dict[str, list[float]]) -> Iterator[Figure]:
    means = {policy: statistics.mean(each) for policy, each in shares.items()}
    ours = shares["fragmentation"]
    yield Figure(
        name=f"packing.openb_{trace}",
        value=means["fragmentation"],
        unit="% of GPUs",
        target=TARGETS[trace],
        peer="fragmentation gradient descent",
        peer_value=PUBLISHED[trace],
        peer_source=SOURCE,
        samples=ours,
    )
    yield Figure(
        name=f"packing.openb_{trace}_error",
        value=statistics.stdev(ours) / len(ours) ** 0.5,
        unit="points (standard error)",
        higher_is_better=False,
    )
    for peer, target in (("best_fit", LEAD), ("random", None)):
        yield Figure(
            name=f"packing.openb_{trace}_over_{peer}",
            value=means["fragmentation"] - means[peer],
            unit="points",
            target=target,
            peer=peer.replace("_", " "),
            peer_value=means[peer],
            peer_source="this run",
        )
