"""How well gangs fill parts of the Lingjun cluster, against the solver's best."""

import statistics
import sys
from collections.abc import Iterator

from gateway.core.admission import Policies, plan_cycle
from tests.bench.figures import Figure
from tests.packing.lingjun import an_instance
from tests.packing.optimum import Outcome, judged

INSTANCES = 1_000
POLICIES = ("fragmentation", "pack")
BUDGET = 100_000
MEAN, P99, TOO_WIDE = 1.0, 5.0, 2.0
SOLVER = "OR-Tools, this run"


def lingjun_figures() -> Iterator[Figure]:
    """Give the figures of every policy that minds how much is left."""
    for policy in POLICIES:
        found = [_outcome(policy, seed) for seed in range(INSTANCES)]
        wide = sum(each.wide for each in found)
        print(f"lingjun {policy}: {wide} gangs of several hosts", file=sys.stderr, flush=True)
        short = sorted(100 * each.shortfall for each in found)
        p99 = short[int(len(short) * 0.99)]
        too_wide = 100 * sum(each.too_wide for each in found) / wide
        yield _figure(f"{policy}_shortfall", statistics.mean(short), "% of the best", MEAN)
        yield _figure(f"{policy}_shortfall_p99", p99, "% of the best", P99)
        yield _figure(f"{policy}_too_wide", too_wide, "% of gangs of several hosts", TOO_WIDE)


def _outcome(policy: str, seed: int) -> Outcome:
    snapshot = an_instance(seed)
    plan = plan_cycle(snapshot, Policies(placement=policy), now_us=0, budget=BUDGET)
    return judged(snapshot, plan)


def _figure(name: str, value: float, unit: str, target: float) -> Figure:
    return Figure(
        name=f"packing.lingjun_{name}",
        value=value,
        unit=unit,
        target=target,
        peer="best there is",
        peer_value=0.0,
        peer_source=SOLVER,
        higher_is_better=False,
    )
