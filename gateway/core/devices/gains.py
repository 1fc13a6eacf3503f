"""Whether a fleet offers anything that an earlier one did not.

As long as it does not, what failed on the earlier one fails on the later one, too.
"""

from collections.abc import Sequence

import numpy as np

from gateway.core.devices.fleet import Fleet

_FIXED = ("names", "machines", "labels", "taints", "resources")
_MASKS = ("gpu_free", "nic_free", "is_available")


def has_gained(before: Fleet, after: Fleet, rows: Sequence[int] | None) -> bool:
    """Whether any node has anything more, or other rules; True when in doubt.

    Args:
        before: the earlier fleet.
        after: the later one.
        rows: the only nodes that may differ; None for other nodes altogether.
    """
    if rows is None or before.is_complete != after.is_complete:
        return True
    # Devices that are told apart otherwise may pair otherwise, so machine types count as a whole.
    if any(getattr(before, name) is not getattr(after, name) for name in _FIXED):
        return True
    chosen = np.array(rows, dtype=np.int64)
    # More of anything counts, even where another amount fell: the fit test knows no exchange.
    if (after.free[chosen] > before.free[chosen]).any():
        return True
    pairs = ((getattr(after, name)[chosen], getattr(before, name)[chosen]) for name in _MASKS)
    return any((new & ~old).any() for new, old in pairs)


def is_alike_when_idle(before: Fleet, after: Fleet) -> bool:
    """Whether both fleets could hold the same gangs with everything free and healthy."""
    fixed = (*_FIXED, "is_complete")
    columns = ("machine", "total", "gpu_all", "nic_all")
    return all(getattr(before, name) == getattr(after, name) for name in fixed) and all(
        np.array_equal(getattr(before, name), getattr(after, name)) for name in columns
    )
