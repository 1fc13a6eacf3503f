"""One admission cycle: a snapshot goes in, one decision per waiting job comes out."""

from gateway.core.admission.never import never_fits
from gateway.core.admission.planning import plan_cycle
from gateway.core.admission.types import (
    Admit,
    Cause,
    Charge,
    ClassHold,
    CyclePlan,
    Hold,
    PodPlacement,
    Policies,
    QuotaStep,
    Snapshot,
    Usage,
)

__all__ = [
    "Admit",
    "Cause",
    "Charge",
    "ClassHold",
    "CyclePlan",
    "Hold",
    "PodPlacement",
    "Policies",
    "QuotaStep",
    "Snapshot",
    "Usage",
    "never_fits",
    "plan_cycle",
]
