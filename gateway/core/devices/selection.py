"""The best set of GPUs and NICs on one node, by plain search over all subsets.

Exact and slow on purpose: it stays as the oracle for any faster search. Answers are remembered, for
a fleet has few machine types and few free states at a time.
"""

from functools import lru_cache
from itertools import product
from typing import NamedTuple

from gateway.core.devices.fleet import MachineType
from gateway.core.devices.topology import (
    Layout,
    layout_of,
    pairing,
    pods_that_fit,
    sizes_left,
    subsets,
)
from gateway.core.vocabulary import PairRule

MANY_PODS = 1 << 20
"""Stands for "as many as the other resources allow"."""


class Choice(NamedTuple):
    """Chosen devices as masks of ordinals; `is_aligned` says whether the pair rule holds."""

    gpu_mask: int
    nic_mask: int
    is_aligned: bool


class DeviceWish(NamedTuple):
    """How many devices one pod wants, and how near to each other."""

    gpus: int
    nics: int
    rule: PairRule
    is_required: bool
    siblings: int = 0
    """Pods alike that must still find their devices in what this choice leaves."""

    @property
    def is_near(self) -> bool:
        """Whether where the devices hang decides, and not only how many are free."""
        near = self.rule in {PairRule.SWITCH, PairRule.NUMA}
        return near and self.is_required and self.gpus > 0 and self.nics > 0


@lru_cache(maxsize=65536)
def choose_devices(
    machine: MachineType, gpu_free: int, nic_free: int, wish: DeviceWish
) -> Choice | None:
    """Give the best choice, or None when the wish cannot be met.

    Among the choices that leave room for the siblings the order is: rule met, sum of pair
    distances, GPU-GPU links, largest groups of free devices kept, device order.
    """
    layout = layout_of(machine)
    best: tuple[tuple[object, ...], Choice] | None = None
    for gpus, nics in product(
        subsets(gpu_free, wish.gpus, layout.alike_gpus),
        subsets(nic_free, wish.nics, layout.alike_nics),
    ):
        first = _first_criteria(layout, gpus, nics, wish.rule)
        # The rule and the distances are cheap, what stays free is not: judged last, for few.
        if (wish.is_required and first[0]) or (best and first > best[0][:3]):
            continue
        left = gpu_free & ~gpus, nic_free & ~nics
        # The best pair for this pod may split the pairs of the next; both have to stand here.
        if wish.siblings and pods_on(machine, *left, wish) < wish.siblings:
            continue
        # Subsets come in device order, so a later equal one must not win.
        key = (*first, sizes_left(layout, *left))
        if best is None or key < best[0]:
            best = (key, Choice(gpus, nics, is_aligned=not first[0]))
    return best[1] if best else None


@lru_cache(maxsize=65536)
def pods_on(machine: MachineType, gpu_free: int, nic_free: int, wish: DeviceWish) -> int:
    """Give how many pods with this wish find their devices at the same time; exact."""
    # Plain counts are exact unless nearness is required: then which devices are free decides.
    by_gpus = gpu_free.bit_count() // wish.gpus if wish.gpus else MANY_PODS
    by_nics = nic_free.bit_count() // wish.nics if wish.nics else MANY_PODS
    most = min(by_gpus, by_nics)
    if not most or not wish.is_near:
        return most
    layout = layout_of(machine)
    groups = layout.switches if wish.rule is PairRule.SWITCH else layout.numas
    return pods_that_fit(groups, gpu_free, nic_free, (wish.gpus, wish.nics))


def _first_criteria(layout: Layout, gpus: int, nics: int, rule: PairRule) -> tuple[bool, int, int]:
    pairs = pairing(layout, gpus, nics, rule)
    return pairs.is_broken, pairs.distance, _link_costs(layout, gpus)


@lru_cache(maxsize=65536)
def _link_costs(layout: Layout, gpus: int) -> int:
    return sum(cost for one, two, cost in layout.links if gpus >> one & 1 and gpus >> two & 1)
