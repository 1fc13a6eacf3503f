"""Which nodes a pod set may use at all: flavor, selectors, affinity, taints, free or not."""

import numpy as np

from gateway.core.devices.fleet import Bool, Fleet
from gateway.core.devices.matching import matches_affinity, matches_labels, untolerated
from gateway.core.jobs.request import PodSetRequest
from gateway.core.queues.definitions import Flavor


def eligible_nodes(fleet: Fleet, pod_set: PodSetRequest, flavor: Flavor) -> Bool:
    """Give a mask of the nodes of this flavor that the pod set's rules allow."""
    return np.array(
        [refusal(fleet, row, pod_set, flavor) == "" for row in range(len(fleet))], dtype=np.bool_
    )


def refusal(fleet: Fleet, row: int, pod_set: PodSetRequest, flavor: Flavor) -> str:
    """Say why a node is out for this pod set; empty when it is not."""
    labels = dict(fleet.labels[row])
    if not matches_labels(labels, flavor.node_labels):
        return f"not of flavor {flavor.name}"
    if not matches_labels(labels, pod_set.node_selector):
        return "node selector does not match"
    if not matches_affinity(labels, pod_set.affinity):
        return "required node affinity does not match"
    taint = untolerated(fleet.taints[row], (*pod_set.tolerations, *flavor.tolerations))
    if taint is not None:
        return f"taint {taint.key}={taint.value} not tolerated"
    return ""
