"""Which nodes a pod set may use at all: flavor, selectors, affinity, taints.

Judged label by label and taint by taint for all nodes at once. What is free does not matter here.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from gateway.core.devices.fleet import Bool, Fleet, Int32
from gateway.core.devices.labels import LabelColumns
from gateway.core.devices.matching import untolerated
from gateway.core.jobs.request import PodSetRequest
from gateway.core.queues.definitions import Flavor
from gateway.core.resources.node_rules import Requirement, Taint, Toleration

Taints = tuple[Taint, ...]
NO_FLAVOR = -1
MAX_MASKS = 4096
MAX_WORDS = 64
"""Rules whose answers are kept; a mask takes a byte a node, words a pointer."""


class NodeRules(NamedTuple):
    """All of a pod set that eligibility depends on, and the flavor it is asked of."""

    flavor: str
    selector: tuple[tuple[str, str], ...]
    affinity: tuple[tuple[Requirement, ...], ...]
    tolerations: tuple[Toleration, ...]
    avoid: tuple[str, ...]


class Eligibility:
    """Answers for one fleet and one set of flavors, remembered by node rules.

    Equal rules are given the same mask, the object itself, until a label or a taint changes; what
    is remembered about a mask may be kept under its identity. Masks are read-only.
    """

    def __init__(self, fleet: Fleet, flavors: tuple[Flavor, ...]) -> None:
        """Find each node's flavor: the first by name that its labels match."""
        self.fleet = fleet
        self.flavors = tuple(sorted(flavors, key=lambda flavor: flavor.name))
        self._labels = LabelColumns(fleet.labels)
        self._judge_nodes()

    def sync(self, fleet: Fleet, rows: Sequence[int]) -> None:
        """Take a fleet of the same nodes, of which these rows may have changed.

        Nothing is forgotten unless labels or taints of one of them did.
        """
        old, self.fleet = self.fleet, fleet
        relabelled = [row for row in rows if old.labels[row] != fleet.labels[row]]
        if relabelled:
            self._labels.sync(fleet.labels, relabelled)
        if relabelled or any(old.taints[row] != fleet.taints[row] for row in rows):
            self._judge_nodes()

    @property
    def flavor_of(self) -> list[str]:
        """Name each node's flavor; empty for a node of none."""
        names = (*(flavor.name for flavor in self.flavors), "")
        return [names[code] for code in self._flavor.tolist()]

    def nodes(self, pod_set: PodSetRequest, flavor: Flavor) -> Bool:
        """Give a mask of the nodes of this flavor that the pod set's rules allow."""
        rules = _rules_of(pod_set, flavor)
        mask = self._masks.get(rules)
        if mask is None:
            mask = self._of_flavor(rules.flavor) & self._labels.matching(rules.selector)
            mask &= self._labels.in_affinity(rules.affinity) & self._tolerating(rules.tolerations)
            mask[list(self._rows_of(rules.avoid))] = False
            mask.flags.writeable = False
            if len(self._masks) >= MAX_MASKS:
                self._masks.clear()
            self._masks[rules] = mask
        return mask

    def refusals(self, pod_set: PodSetRequest, flavor: Flavor) -> tuple[str, ...]:
        """Say for each node why it is out for this pod set; empty when it is not."""
        rules = _rules_of(pod_set, flavor)
        if rules not in self._words:
            if len(self._words) >= MAX_WORDS:
                self._words.clear()
            self._words[rules] = tuple(self._refusals(rules).tolist())
        return self._words[rules]

    def _judge_nodes(self) -> None:
        self._masks: dict[NodeRules, Bool] = {}
        self._words: dict[NodeRules, tuple[str, ...]] = {}
        self._flavor: Int32 = np.full(len(self.fleet), NO_FLAVOR, dtype=np.int32)
        # The first by name is written last and stays.
        for code, flavor in reversed(tuple(enumerate(self.flavors))):
            self._flavor[self._labels.matching(flavor.node_labels)] = code
        self._taint_codes: dict[Taints, int] = {}
        codes = [
            self._taint_codes.setdefault(taints, len(self._taint_codes))
            for taints in self.fleet.taints
        ]
        self._taints: Int32 = np.array(codes, dtype=np.int32)

    def _rows_of(self, names: Iterable[str]) -> Iterator[int]:
        """Give the rows of these nodes; names that no node has are nobody's."""
        wanted = set(names)
        return (row for row, name in enumerate(self.fleet.names) if wanted and name in wanted)

    def _of_flavor(self, name: str) -> Bool:
        codes = [code for code, flavor in enumerate(self.flavors) if flavor.name == name]
        mine: Bool = np.isin(self._flavor, codes)
        return mine

    def _tolerating(self, tolerations: tuple[Toleration, ...]) -> Bool:
        verdicts = [untolerated(taints, tolerations) is None for taints in self._taint_codes]
        tolerated: Bool = np.array(verdicts, dtype=np.bool_)[self._taints]
        return tolerated

    def _refusals(self, rules: NodeRules) -> np.ndarray:
        """Give the words as a column; a reason that comes first is written last."""
        taint_words = [_taint_words(untolerated(t, rules.tolerations)) for t in self._taint_codes]
        words = np.array(taint_words, dtype=np.object_)[self._taints]
        words[list(self._rows_of(rules.avoid))] = "the job avoids it"
        words[~self._labels.in_affinity(rules.affinity)] = "required node affinity does not match"
        words[~self._labels.matching(rules.selector)] = "node selector does not match"
        words[~self._of_flavor(rules.flavor)] = f"not of flavor {rules.flavor}"
        return words


def _rules_of(pod_set: PodSetRequest, flavor: Flavor) -> NodeRules:
    # A flavor's tolerations count as the pods' own, like those of Kueue's ResourceFlavor.
    tolerations = (*pod_set.tolerations, *flavor.tolerations)
    avoid = pod_set.avoid if pod_set.is_avoid_required else ()
    return NodeRules(flavor.name, pod_set.node_selector, pod_set.affinity, tolerations, avoid)


def _taint_words(taint: Taint | None) -> str:
    return "" if taint is None else f"taint {taint.key}={taint.value} not tolerated"
