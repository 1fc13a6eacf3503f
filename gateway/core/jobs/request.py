"""What a gang asks for: the part of a job that a decision needs, and nothing it does not.

Jobs with equal requests form one request class, so everything here is hashable and canonical.
"""

from dataclasses import dataclass

from gateway.core.resources import PODS, Amounts, amounts, plus, times
from gateway.core.resources.node_rules import Requirement, Toleration
from gateway.core.vocabulary import PairRule, PartitionRule


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSetRequest:
    """Pods alike in a gang."""

    name: str
    """Master or Worker."""
    count: int
    per_pod: Amounts
    """Effective requests of one pod: cpu in millicores, memory in bytes, gpu and rdma whole."""
    node_selector: tuple[tuple[str, str], ...] = ()
    """Sorted label equalities."""
    affinity: tuple[tuple[Requirement, ...], ...] = ()
    """Required node affinity: any term, each of all its requirements; empty means no rule."""
    tolerations: tuple[Toleration, ...] = ()
    pair: PairRule = PairRule.NODE
    is_pair_required: bool = True
    partition: PartitionRule = PartitionRule.NONE
    """Whether the GPUs of a pod must be one NVLink partition."""
    host_ports: tuple[int, ...] = ()
    level: str = ""
    """Node label whose value all pods of the set must share, such as a rack's; empty is none."""
    is_level_required: bool = True
    """Else it is only preferred."""
    slices: tuple[tuple[str, int], ...] = ()
    """Node label and number of pods: each so many pods in rank order share one value of it. Slices
    inside slices come after those they are in; the pods of the gang are a multiple of each number.
    The set with most pods is cut, and one single pod (a Master) may come before its first."""

    avoid: tuple[str, ...] = ()
    """Names of nodes to keep off, sorted."""
    is_avoid_required: bool = True
    """Else they are used where there is no other place."""

    @property
    def required_level(self) -> str:
        """Node label whose value all pods must share; empty is none."""
        return self.level if self.is_level_required else ""

    @property
    def total(self) -> Amounts:
        """Amounts of the whole pod set, pods counted."""
        # The kubelet takes a limited number of pods, so a pod that asks for nothing still takes
        # one.
        return times(plus(self.per_pod, amounts({PODS: 1})), self.count)


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestClass:
    """The shape of a gang; equal shapes are one class."""

    pod_sets: tuple[PodSetRequest, ...]

    @property
    def total(self) -> Amounts:
        """Amounts of the whole gang, pods counted."""
        total: Amounts = ()
        for pod_set in self.pod_sets:
            total = plus(total, pod_set.total)
        return total
