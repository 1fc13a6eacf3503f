"""Which nodes a pod set may use at all: flavor, selectors, affinity, taints."""

import numpy as np

from gateway.core.devices.fleet import Bool, Fleet
from gateway.core.devices.matching import matches_affinity, matches_labels, untolerated
from gateway.core.jobs.request import PodSetRequest
from gateway.core.queues.definitions import Flavor
from gateway.core.resources.node_rules import Requirement, Toleration

NodeRules = tuple[
    tuple[tuple[str, str], ...], tuple[tuple[Requirement, ...], ...], tuple[Toleration, ...]
]
"""Selector, affinity and tolerations: all of a pod set that eligibility depends on."""


class Eligibility:
    """Answers for one fleet and one set of flavors, remembered by node rules."""

    def __init__(self, fleet: Fleet, flavors: tuple[Flavor, ...]) -> None:
        """Find each node's flavor: the first by name that its labels match."""
        self.fleet = fleet
        self.labels = [dict(pairs) for pairs in fleet.labels]
        by_name = sorted(flavors, key=lambda flavor: flavor.name)
        self.flavor_of = [
            next((f.name for f in by_name if matches_labels(labels, f.node_labels)), "")
            for labels in self.labels
        ]
        self._known: dict[tuple[str, NodeRules], tuple[tuple[str, ...], Bool]] = {}

    def nodes(self, pod_set: PodSetRequest, flavor: Flavor) -> Bool:
        """Give a mask of the nodes of this flavor that the pod set's rules allow."""
        return self._judged(pod_set, flavor)[1]

    def refusals(self, pod_set: PodSetRequest, flavor: Flavor) -> tuple[str, ...]:
        """Say for each node why it is out for this pod set; empty when it is not."""
        return self._judged(pod_set, flavor)[0]

    def _judged(self, pod_set: PodSetRequest, flavor: Flavor) -> tuple[tuple[str, ...], Bool]:
        rules = (
            pod_set.node_selector,
            pod_set.affinity,
            (*pod_set.tolerations, *flavor.tolerations),
        )
        key = (flavor.name, rules)
        if key not in self._known:
            why = tuple(self._refusal(row, flavor, rules) for row in range(len(self.fleet)))
            self._known[key] = why, np.array([not each for each in why], dtype=np.bool_)
        return self._known[key]

    def _refusal(self, row: int, flavor: Flavor, rules: NodeRules) -> str:
        selector, affinity, tolerations = rules
        if self.flavor_of[row] != flavor.name:
            return f"not of flavor {flavor.name}"
        if not matches_labels(self.labels[row], selector):
            return "node selector does not match"
        if not matches_affinity(self.labels[row], affinity):
            return "required node affinity does not match"
        taint = untolerated(self.fleet.taints[row], tolerations)
        if taint is not None:
            return f"taint {taint.key}={taint.value} not tolerated"
        return ""
