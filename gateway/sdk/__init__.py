"""The Python client: `submit`, `Client`, `JobHandle`. Light: pydantic, PyYAML and one HTTP client.

    from gateway.sdk import submit

    job = submit("job.yaml", queue="research")
    job.wait(timeout=3600)

Errors are the classes of `gateway.errors`, the same that the server raises.
"""

from gateway.sdk.client import Client, submit
from gateway.sdk.handle import JobHandle, JobResult
from gateway.sdk.jobs import BatchOutcome

__all__ = ["BatchOutcome", "Client", "JobHandle", "JobResult", "submit"]
