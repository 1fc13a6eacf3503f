"""Pod sets reduced to what one pod needs of a node, so that like pods share what is known of them.

Names, counts and node rules do not belong to a shape.
"""

from gateway.core.devices.selection import DeviceWish
from gateway.core.jobs.request import PodSetRequest
from gateway.core.placing.fits import PodFits, PodShape
from gateway.core.placing.states import NodeStates
from gateway.core.resources import GPU, PODS, RDMA, Amounts
from gateway.core.vocabulary import PairRule, PartitionRule

ShapeKey = tuple[Amounts, tuple[int, ...], PairRule, bool, PartitionRule]


class Shapes:
    """What is known about each shape of pod on one table of node states."""

    def __init__(self, states: NodeStates) -> None:
        """Start knowing no shape."""
        self.states = states
        self._fits: dict[ShapeKey, PodFits] = {}

    def __len__(self) -> int:
        """Number of shapes."""
        return len(self._fits)

    def fits(self, pod_set: PodSetRequest, *, is_strict: bool = False) -> PodFits:
        """Give what is known of a set's pods; strict takes a preferred pair rule as required."""
        is_required = is_strict or pod_set.is_pair_required
        rules = (pod_set.pair, is_required, pod_set.partition)
        key = (pod_set.per_pod, pod_set.host_ports, *rules)
        fits = self._fits.get(key)
        if fits is None:
            shape = self._shape(pod_set, wish_of(pod_set)._replace(is_required=is_required))
            fits = self._fits[key] = PodFits(self.states, shape)
        return fits

    def need(self, pod_set: PodSetRequest) -> tuple[int, ...]:
        """Give one pod's need in the resource columns."""
        # The kubelet counts pods against maxPods, so each needs one of them.
        wanted = {**dict(pod_set.per_pod), PODS: 1}
        return tuple(wanted.get(name, 0) for name in self.states.resources)

    def _shape(self, pod_set: PodSetRequest, wish: DeviceWish) -> PodShape:
        known = {*self.states.resources, GPU, RDMA}
        return PodShape(
            need=self.need(pod_set),
            wish=wish,
            ports=frozenset(pod_set.host_ports),
            # Columns exist for what some node has: anything else would silently ask for nothing.
            is_known=all(name in known for name, _ in pod_set.per_pod),
        )


def wish_of(pod_set: PodSetRequest) -> DeviceWish:
    """Give what one pod wants of a node's devices."""
    wanted = dict(pod_set.per_pod)
    return DeviceWish(
        wanted.get(GPU, 0),
        wanted.get(RDMA, 0),
        pod_set.pair,
        pod_set.is_pair_required,
        partition=pod_set.partition,
    )
