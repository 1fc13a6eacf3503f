"""Waiting jobs as columns of equal length, because a million of them must stay cheap."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gateway.core.jobs.request import RequestClass

Int64 = NDArray[np.int64]
Int32 = NDArray[np.int32]


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingJobs:
    """Pending jobs, one row each, in any order.

    `queue` and `request_class` are indexes into `Snapshot.queues` and `classes`;
    `submitted_us` is microseconds since the epoch, UTC; `version` is the row's version in the
    database, for the compare-and-set of the commit.
    """

    job_id: Int64
    version: Int64
    queue: Int32
    request_class: Int32
    priority: Int64
    submitted_us: Int64
    classes: tuple[RequestClass, ...]

    def __len__(self) -> int:
        """Number of waiting jobs."""
        return len(self.job_id)
