"""Labels of all nodes as columns by key, so that a rule is judged once for each value of a label.

Columns are built when a key is first asked for. Knows nothing of flavors, pods or what is free.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from gateway.core.devices.fleet import Bool, Int32
from gateway.core.devices.matching import meets
from gateway.core.resources.node_rules import Requirement

LabelPairs = tuple[tuple[str, str], ...]
ABSENT = -1
"""Code of a node without the label; as an index it is the last entry of a verdict table."""


class LabelColumn(NamedTuple):
    """One label: each node's value as a code."""

    codes: Int32
    code_of: dict[str, int]

    def nodes(self, verdicts: Iterable[bool]) -> Bool:
        """Give the nodes whose value has a True verdict; the last verdict is for no value."""
        table = np.fromiter(verdicts, dtype=np.bool_, count=len(self.code_of) + 1)
        chosen: Bool = table[self.codes]
        return chosen


class LabelColumns:
    """The labels of one fleet."""

    def __init__(self, labels: Sequence[LabelPairs]) -> None:
        """Keep the sorted label pairs of each node."""
        self._labels = labels
        self._columns: dict[str, LabelColumn] = {}

    def sync(self, labels: Sequence[LabelPairs], rows: Iterable[int]) -> None:
        """Take new labels of these rows; the rows are still the same nodes."""
        self._labels = labels
        changed = [(row, dict(labels[row])) for row in rows]
        for key, column in self._columns.items():
            for row, pairs in changed:
                column.codes[row] = _code(column.code_of, pairs.get(key))

    def column(self, key: str) -> LabelColumn:
        """Give the column of one label."""
        if key not in self._columns:
            code_of: dict[str, int] = {}
            codes = [_code(code_of, dict(pairs).get(key)) for pairs in self._labels]
            self._columns[key] = LabelColumn(np.array(codes, dtype=np.int32), code_of)
        return self._columns[key]

    def matching(self, wanted: LabelPairs) -> Bool:
        """Give the nodes that have every wanted label with exactly that value."""
        matched = np.ones(len(self._labels), dtype=np.bool_)
        for key, value in wanted:
            column = self.column(key)
            # A value that no node has is no code at all.
            matched &= column.codes == column.code_of.get(value, ABSENT - 1)
        return matched

    def in_affinity(self, terms: tuple[tuple[Requirement, ...], ...]) -> Bool:
        """Give the nodes for which any term holds with all its requirements; no terms, no rule."""
        matched = np.full(len(self._labels), not terms, dtype=np.bool_)
        for term in filter(None, terms):
            matched |= np.logical_and.reduce([self._meeting(each) for each in term])
        return matched

    def _meeting(self, requirement: Requirement) -> Bool:
        column = self.column(requirement.key)
        labels = [{requirement.key: value} for value in column.code_of]
        return column.nodes(meets(each, requirement) for each in (*labels, {}))


def _code(code_of: dict[str, int], value: str | None) -> int:
    # Codes only grow: columns that were given out keep their meaning when nodes are relabelled.
    return ABSENT if value is None else code_of.setdefault(value, len(code_of))
