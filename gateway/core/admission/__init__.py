"""One admission cycle: a snapshot goes in, one decision per waiting job comes out."""

from gateway.core.admission.never import never_fits
from gateway.core.admission.passes import plan_pass
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
    QueueHold,
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
    "QueueHold",
    "QuotaStep",
    "Snapshot",
    "Usage",
    "never_fits",
    "plan_cycle",
    "plan_pass",
]
