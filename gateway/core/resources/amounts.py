"""One pod's or one gang's amounts, as an immutable sorted tuple of (resource, whole number).

Units: `cpu` in thousandths of a core, `memory` in bytes, `gpu` and `rdma` in whole devices, `pods`
in pods, any extended resource in its own count. No floats anywhere: two amounts that print alike
are equal. Sorted tuples hash and compare cheaply, so they serve as parts of a request class.
"""

from collections.abc import Mapping
from typing import Final

Amounts = tuple[tuple[str, int], ...]
"""Sorted by resource name, without zero entries."""

CPU: Final = "cpu"
MEMORY: Final = "memory"
GPU: Final = "gpu"
RDMA: Final = "rdma"
PODS: Final = "pods"


def amounts(values: Mapping[str, int]) -> Amounts:
    """Give the canonical form of a mapping: sorted, zeros dropped."""
    # Zeros go, for {"gpu": 0} and {} must be one request class; only zeros, as a debt is no
    # nothing.
    return tuple(sorted((name, count) for name, count in values.items() if count))


def plus(left: Amounts, right: Amounts) -> Amounts:
    """Add resource by resource."""
    total = dict(left)
    for name, count in right:
        total[name] = total.get(name, 0) + count
    return amounts(total)


def minus(left: Amounts, right: Amounts) -> Amounts:
    """Subtract resource by resource; results may be negative."""
    # Whole numbers of Python: no overflow, not even with UNLIMITED in it.
    return plus(left, times(right, -1))


def times(value: Amounts, factor: int) -> Amounts:
    """Multiply every resource by a whole number."""
    return amounts({name: count * factor for name, count in value})
