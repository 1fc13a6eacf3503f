"""Waiting jobs as columns of equal length, because a million of them must stay cheap."""

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from gateway.core.jobs.request import RequestClass

Int64 = NDArray[np.int64]
Int32 = NDArray[np.int32]
Bool = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingJobs:
    """Pending jobs, one row each, in any order.

    `queue`, `request_class` and `user` are indexes into `Snapshot.queues`, `classes` and `users`;
    instants are microseconds since the epoch, UTC; `version` is the row's version in the database,
    for the compare-and-set of the commit.
    """

    # A row of these columns takes 40 bytes, a Python object of the same fields several times that.
    job_id: Int64
    version: Int64
    queue: Int32
    request_class: Int32
    priority: Int64
    # Microseconds as a whole number: float seconds would tie jobs that came one after the other.
    submitted_us: Int64
    user: Int32
    rank: Int64
    """Value of the job's priority class; alone counts across queues. 0 where it has none."""
    eligible_us: Int64
    """Not considered before; 0 is at once."""
    deadline_us: Int64
    """0 is none."""
    expected_seconds: Int64
    """How long it is expected to run; 0 is unknown."""
    users: tuple[str, ...]
    classes: tuple[RequestClass, ...]

    def __len__(self) -> int:
        """Number of waiting jobs."""
        return len(self.job_id)

    def take(self, rows: Bool | Int64) -> "WaitingJobs":
        """Give only these rows, in this order; users and classes stay as they are."""
        chosen = {name: getattr(self, name)[rows] for name in _COLUMNS}
        return WaitingJobs(**chosen, users=self.users, classes=self.classes)


_COLUMNS = tuple(each.name for each in fields(WaitingJobs) if each.name not in {"users", "classes"})
