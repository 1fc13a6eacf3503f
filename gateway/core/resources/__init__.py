"""Amounts of resources: whole numbers in base units, compared resource by resource.

Here belongs arithmetic on amounts and nothing that knows a queue, a node or a job.
"""

from gateway.core.resources.amounts import (
    CPU,
    GPU,
    MEMORY,
    PODS,
    RDMA,
    Amounts,
    amounts,
    minus,
    plus,
    times,
)

__all__ = ["CPU", "GPU", "MEMORY", "PODS", "RDMA", "Amounts", "amounts", "minus", "plus", "times"]
