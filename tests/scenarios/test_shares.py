"""Share figures, by the quota tree of the product and by the naive one."""

from fractions import Fraction
from pathlib import Path

import pytest

from gateway.core.admission.trial import tree_of
from gateway.core.queues.share import share_after
from tests.oracle.planner import new_case
from tests.oracle.shares import dominant_share
from tests.oracle.tree import tree_at
from tests.oracle.trying import used_after
from tests.scenarios.reading import scenarios_in, snapshot_of

CASES = dict(scenarios_in(Path(__file__).parent / "figures"))
Figures = dict[str, int | str]


def rounded(share: Fraction, *, is_infinite: bool) -> int | str:
    return "infinite" if is_infinite else round(share * 1000)


@pytest.mark.parametrize("name", CASES)
def test_the_quota_tree_has_the_share_that_the_figure_says(name: str) -> None:
    tree = tree_of(snapshot_of({"incoming": [], **CASES[name]}))
    found: Figures = {}
    for node_name in CASES[name]["shares"]:
        node = tree.queues.get(node_name) or tree.cohorts[node_name]
        share = Fraction(share_after(node, {}, tree.share_bits), 2**tree.share_bits)
        found[node_name] = rounded(share, is_infinite=bool(share) and not node.weight)
    assert found == CASES[name]["shares"]


@pytest.mark.parametrize("name", CASES)
def test_the_naive_tree_has_the_share_that_the_figure_says(name: str) -> None:
    snapshot = snapshot_of({"incoming": [], **CASES[name]})
    used = used_after(new_case(snapshot, 0), ())
    tree = tree_at(snapshot, 0)
    found: Figures = {}
    for node_name in CASES[name]["shares"]:
        node = ("queue" if ("queue", node_name) in tree.parents else "cohort", node_name)
        is_infinite, share = dominant_share(tree, used, node)
        found[node_name] = rounded(share, is_infinite=is_infinite)
    assert found == CASES[name]["shares"]
