"""Which nodes a pod set may use, judged node by node: the oracle of the judgement by columns."""

from gateway.core.devices.fleet import Fleet
from gateway.core.devices.matching import matches_affinity, matches_labels, untolerated
from gateway.core.jobs.request import PodSetRequest
from gateway.core.queues.definitions import Flavor


def plain_refusals(
    fleet: Fleet, flavors: tuple[Flavor, ...], pod_set: PodSetRequest, flavor: Flavor
) -> tuple[str, ...]:
    """Say for each node why it is out for this pod set; empty when it is not."""
    return tuple(plain_refusal(fleet, row, flavors, (pod_set, flavor)) for row in range(len(fleet)))


def plain_refusal(
    fleet: Fleet, row: int, flavors: tuple[Flavor, ...], asked: tuple[PodSetRequest, Flavor]
) -> str:
    pod_set, flavor = asked
    labels = dict(fleet.labels[row])
    own = [each.name for each in flavors if matches_labels(labels, each.node_labels)]
    if min(own, default="") != flavor.name:
        return f"not of flavor {flavor.name}"
    if not matches_labels(labels, pod_set.node_selector):
        return "node selector does not match"
    if not matches_affinity(labels, pod_set.affinity):
        return "required node affinity does not match"
    if pod_set.is_avoid_required and fleet.names[row] in pod_set.avoid:
        return "the job avoids it"
    taint = untolerated(fleet.taints[row], (*pod_set.tolerations, *flavor.tolerations))
    if taint is not None:
        return f"taint {taint.key}={taint.value} not tolerated"
    return ""
