"""Ordering policies: who of one queue comes first. Keys do not change with time."""

from typing import Protocol

import numpy as np

from gateway.core.jobs.columns import Int64, WaitingJobs


class OrderingPolicy(Protocol):
    """Sort the waiting jobs of one queue."""

    def __call__(self, waiting: WaitingJobs, rows: Int64) -> Int64:
        """Give the same rows, first to start first."""


def priority(waiting: WaitingJobs, rows: Int64) -> Int64:
    """Higher number first, then older, then lower id."""
    order = np.lexsort((waiting.job_id[rows], waiting.submitted_us[rows], -waiting.priority[rows]))
    return rows[order]


ORDERING: dict[str, OrderingPolicy] = {"priority": priority}
