"""The places of a machine type as two levels: NUMA nodes, and inside each the PCIe switches.

Devices whose place is unknown are kept together in a last nest that is near nothing. Knows nothing
of what is free or asked for.
"""

from dataclasses import dataclass
from typing import NamedTuple

from gateway.core.devices.topology import Group, Layout


class Leaf(NamedTuple):
    """Masks of the devices under one switch, or of those that hang under none of a NUMA node."""

    gpus: int
    nics: int
    is_switch: bool

    def counts(self, gpus: int) -> int:
        """Give how many of these GPUs are here."""
        return (gpus & self.gpus).bit_count()


@dataclass(frozen=True, slots=True, eq=False)
class Nest:
    """One NUMA node with everything in it; compared by identity, for answers are kept by nest."""

    gpus: int
    nics: int
    leaves: tuple[Leaf, ...]
    is_numa: bool
    """False for the devices whose place nobody knows."""

    def counts(self, gpus: int) -> tuple[int, ...]:
        """Give how many of these GPUs are in each leaf."""
        return tuple(leaf.counts(gpus) for leaf in self.leaves)


def nests_of(layout: Layout, gpus: int, nics: int) -> tuple[Nest, ...]:
    """Give the nests of a machine that has these devices."""
    nests = [_nest(group, layout.switches) for group in layout.numas]
    rest = _without((gpus, nics), layout.numas)
    if any(rest):
        nests.append(Nest(*rest, (Leaf(*rest, is_switch=False),), is_numa=False))
    return tuple(nests)


def _nest(numa: Group, switches: tuple[Group, ...]) -> Nest:
    inside = tuple(group for group in switches if _is_inside(group, numa))
    leaves = [Leaf(*group, is_switch=True) for group in inside]
    rest = _without(numa, inside)
    if any(rest):
        leaves.append(Leaf(*rest, is_switch=False))
    return Nest(*numa, tuple(leaves), is_numa=True)


def _is_inside(switch: Group, numa: Group) -> bool:
    # Groups nest, so a switch that shares a device with the NUMA node lies in it as a whole.
    return bool(switch[0] & numa[0] | switch[1] & numa[1])


def _without(group: Group, parts: tuple[Group, ...]) -> Group:
    # Sums are unions here, since parts do not overlap.
    return group[0] & ~sum(part[0] for part in parts), group[1] & ~sum(part[1] for part in parts)
