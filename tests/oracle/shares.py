"""Fair share in Fractions, and the keys by which children of a cohort, and roots, are compared.

All of it is asked of usage in which the request is already counted: "after admitting".
"""

from collections import Counter
from fractions import Fraction

from tests.oracle.tree import Node, Tree, Used, pairs_below, path, potential, quota, usage

Share = tuple[bool, Fraction]
"""(infinite, value): who has weight 0 and takes anything comes after all others."""


def dominant_share(tree: Tree, used: Used, node: Node) -> Share:
    """Give what a child takes beyond its own quota over what its cohort could lend (KEP-1714)."""
    above = tree.parents[node]
    if above is None:
        return False, Fraction(0)
    beyond: Counter[str] = Counter()
    lendable: Counter[str] = Counter()
    for pair in pairs_below(tree, path(tree, node)[-1]):
        beyond[pair[1]] += max(0, usage(tree, used, node, pair) - quota(tree, node, pair))
        lendable[pair[1]] += potential(tree, above, pair)
    return _over_weight(_largest(beyond, lendable), tree.weights[node])


def root_share(tree: Tree, used: Used, root: Node) -> Share:
    """Give what a root uses of its own quota, by its scarcest resource."""
    taken: Counter[str] = Counter()
    owned: Counter[str] = Counter()
    for pair in pairs_below(tree, root):
        taken[pair[1]] += usage(tree, used, root, pair)
        owned[pair[1]] += quota(tree, root, pair)
    return _over_weight(_largest(taken, owned), tree.weights[root])


def _largest(parts: Counter[str], wholes: Counter[str]) -> Fraction:
    ratios = [Fraction(parts[name], whole) for name, whole in wholes.items() if whole > 0]
    return max([Fraction(0), *ratios])


def _over_weight(ratio: Fraction, weight: int) -> Share:
    if not ratio:
        return False, Fraction(0)
    return (False, ratio / weight) if weight else (True, ratio)
