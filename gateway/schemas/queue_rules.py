"""What a queue may rule besides quota: ageing, caps, a budget, and quota that changes at a date.

Forms only. Whether a rule makes sense beside the other definitions is judged where they are known.
"""

from typing import Annotated

from pydantic import Field, StringConstraints

from gateway.schemas.base import DnsLabel, Timestamp, WireModel

MOST = 1_000_000_000
LONGEST_WINDOW_DAYS = 3660
# Whole first: strict mode tells 8 from "8" and neither becomes the other.
Quantity = int | Annotated[str, StringConstraints(min_length=1, max_length=32)]
"""A whole number in base units, or a Kubernetes quantity such as 500m or 64Gi."""
# 0 is a cap too: nothing gets in, and what is there drains.
Cap = Annotated[int, Field(ge=0, le=MOST)]


class AgeingSpec(WireModel):
    """How much waiting raises a job's priority inside its queue."""

    # Exact keys multiply it by an instant in microseconds; more would not go into 64 bits.
    per_hour: int = Field(default=0, ge=0, le=1000)
    cap: int = Field(default=0, ge=0, le=MOST)
    """Most that waiting adds."""


class CapsSpec(WireModel):
    """Plain numbers that the queue does not go beyond; None is no cap."""

    queued_jobs: Cap | None = None
    """Pending and held jobs; a further submit is refused."""
    running_jobs: Cap | None = None
    """Gangs that hold devices at the same time."""
    gpus_per_job: Cap | None = None
    """A larger job is refused."""
    user_queued_jobs: Cap | None = None
    """As queued_jobs, of one user."""
    user_running_jobs: Cap | None = None
    user_gpus: Cap | None = None
    """GPUs that one user's gangs hold at the same time."""


class BudgetSpec(WireModel):
    """GPU time that the queue may use in each window; give the window in days or in seconds."""

    # Fractions too: a quarter of an hour on one GPU is a budget.
    gpu_hours: int | float = Field(ge=0, le=MOST)
    window_days: int | None = Field(default=None, ge=1, le=LONGEST_WINDOW_DAYS)
    window_seconds: int | None = Field(default=None, ge=1, le=LONGEST_WINDOW_DAYS * 86_400)
    starts_at: Timestamp | None = None
    """Start of one window; the others follow before and after it. None is midnight UTC."""


class DatedChangeSpec(WireModel):
    """A quota row that takes new values at an instant; None leaves a value as it was."""

    # Aware: without a zone it would be another instant on every machine that reads the file.
    at: Timestamp
    flavor: DnsLabel
    resource: str = Field(min_length=1, max_length=253)
    nominal: Quantity | None = None
    borrowing_limit: Quantity | None = None
    lending_limit: Quantity | None = None
